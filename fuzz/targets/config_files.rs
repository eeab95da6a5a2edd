//! `group.toml` and `node.toml`: a file that is read, written and read again stays the same.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use theta_fuzz::plant;
use theta_network::Fingerprint;
use theta_network::group::GroupFile;
use theta_service::NodeConfig;

fuzz_target!(init: plant("config_files", seeds()), |text: &str| {
    let file = Path::new("file.toml");
    match GroupFile::parse(text, file) {
        Ok(group) => assert_eq!(GroupFile::parse(&group.to_text(), file).expect("our own text"), group),
        Err(error) => one_line(&error.to_string()),
    }
    match NodeConfig::parse(text, file) {
        Ok(config) => {
            let text = config.to_toml().expect("paths that came from text");
            assert_eq!(NodeConfig::parse(&text, file).expect("our own text"), config);
        }
        Err(error) => one_line(&error.to_string()),
    }
    if let Ok(fingerprint) = text.parse::<Fingerprint>() {
        assert_eq!(fingerprint.to_string(), text.to_lowercase());
    }
});

/// An error message for people has one line.
fn one_line(error: &str) {
    assert_eq!(error.lines().count(), 1, "{error:?}");
}

fn seeds() -> Vec<Vec<u8>> {
    let fingerprint = "0f".repeat(32);
    let node = "id = 1\ngroup = \"g.toml\"\ncpu_threads = 2\n[listen]\npeer = \"127.0.0.1:1\"\napi = \"[::1]:2\"\n\
                metrics = \"127.0.0.1:3\"\n[limits]\nmax_in_flight = 9\n[log]\nformat = \"json\"\n";
    let group = format!(
        "name = \"demo\"\nthreshold = 1\n[[node]]\nid = 1\npeer_address = \"a:1\"\napi_address = \"a:2\"\n\
         certificate = \"{fingerprint}\"\n[[client]]\nname = \"c\"\ncertificate = \"{}\"\n",
        "1e".repeat(32)
    );
    vec![node.as_bytes().to_vec(), group.into_bytes(), fingerprint.into_bytes()]
}
