//! OpenSSL, by the provider `pkcs11-provider`: the programs of OpenSSL sign with the group's keys.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use theta_knot::places::Places;

use crate::{
    generation::pooled,
    group::{command, module, openssl, shared, succeeds, until},
    harness::Group,
};

/// Where OpenSSL looks for providers.
pub(crate) fn modules() -> PathBuf {
    let unpacked = Places::of_this_machine().libraries().into_iter().map(|folder| folder.join("ossl-modules"));
    let own = succeeds({
        let mut command = Command::new("openssl");
        command.args(["version", "-m"]);
        command
    });
    // MODULESDIR: "/usr/lib/..."
    let own = own.split('"').nth(1).map(PathBuf::from);
    let found = unpacked.chain(own).find(|folder| folder.join("pkcs11.so").is_file());
    found.expect("pkcs11.so is missing: install Debian's package pkcs11-provider, or let cargo xtask test unpack it")
}

/// A directory of a host, with a configuration of OpenSSL that has the provider with these settings.
struct Openssl<'a> {
    group: &'a Group,
    dir: TempDir,
}

impl<'a> Openssl<'a> {
    fn new(group: &'a Group) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "openssl_conf = init\n[init]\nproviders = provider_sect\n[provider_sect]\ndefault = default_sect\n\
             pkcs11 = pkcs11_sect\n[default_sect]\nactivate = 1\n[pkcs11_sect]\nmodule = {}/pkcs11.so\npkcs11-module-path = {}\n\
             pkcs11-module-quirks = no-operation-state\npkcs11-module-encode-provider-uri-to-pem = true\nactivate = 1\n\
             [req]\ndistinguished_name = name\n[name]\n",
            modules().display(),
            module().display()
        );
        fs::write(dir.path().join("openssl.cnf"), config).unwrap();
        fs::write(dir.path().join("message"), "a message for a token").unwrap();
        Self { group, dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// `openssl` with the provider.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(self.group, "openssl");
        command.args(words).env("OPENSSL_CONF", self.path().join("openssl.cnf")).current_dir(self.path());
        Places::of_this_machine().with_libraries(&mut command);
        command
    }

    /// Runs it to its end.
    fn run(&self, words: &[&str]) -> String {
        succeeds(self.command(words))
    }
}

/// A certificate that the group has signed for itself: any program checks it.
#[test]
fn the_group_signs_certificates() {
    let host = Openssl::new(shared());
    for key in ["p256", "rsa", "ed"] {
        let uri = format!("pkcs11:token=theta-group;object={key};type=private");
        host.run(&[
            "req",
            "-x509",
            "-new",
            "-key",
            &uri,
            "-subj",
            "/CN=A group",
            "-days",
            "30",
            "-out",
            "certificate.pem",
        ]);
        let verified =
            openssl(host.path(), &["verify", "-check_ss_sig", "-CAfile", "certificate.pem", "certificate.pem"]);
        assert!(verified.contains("certificate.pem: OK"), "{key}: {verified}");
        let shown = openssl(host.path(), &["x509", "-in", "certificate.pem", "-noout", "-pubkey"]);
        let exported = shared().theta(&["keys", "export", key]).ok().text();
        assert_eq!(shown, exported, "{key}");
    }
}

#[test]
fn openssl_signs_and_verifies_by_the_module() {
    let host = Openssl::new(shared());
    openssl(host.path(), &["dgst", "-sha256", "-binary", "-out", "digest", "message"]);
    for (key, input, raw) in
        [("p256", "message", true), ("p256", "digest", false), ("rsa", "message", true), ("ed", "message", true)]
    {
        let private = format!("pkcs11:token=theta-group;object={key};type=private");
        let public = format!("pkcs11:token=theta-group;object={key};type=public");
        let mut words = vec!["-in", input, "-sigfile", "signature"];
        if raw {
            words.push("-rawin");
        }
        if raw && key != "ed" {
            words.extend(["-digest", "sha256"]);
        }
        let sign: Vec<&str> = words.iter().map(|word| if *word == "-sigfile" { "-out" } else { word }).collect();
        host.run(&[&["pkeyutl", "-sign", "-inkey", &private][..], &sign].concat());
        // By OpenSSL itself, and by the module.
        fs::write(host.path().join("public.pem"), shared().theta(&["keys", "export", key]).ok().stdout).unwrap();
        for key in [&["-pubin", "-inkey", "public.pem"][..], &["-pubin", "-inkey", &public]] {
            let said = host.run(&[&["pkeyutl", "-verify"][..], key, &words].concat());
            assert!(said.contains("Verified Successfully"), "{said}");
        }
    }
}

/// Signatures by PSS take the settings of the key's suite.
#[test]
fn openssl_signs_by_pss() {
    let host = Openssl::new(shared());
    let pss = ["-rawin", "-digest", "sha256", "-pkeyopt", "rsa_padding_mode:pss", "-pkeyopt", "rsa_pss_saltlen:32"];
    let private = "pkcs11:token=theta-group;object=pss;type=private";
    host.run(&[&["pkeyutl", "-sign", "-inkey", private, "-in", "message", "-out", "signature"][..], &pss].concat());
    fs::write(host.path().join("public.pem"), shared().theta(&["keys", "export", "pss"]).ok().stdout).unwrap();
    let verify = ["pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-in", "message", "-sigfile", "signature"];
    assert!(openssl(host.path(), &[&verify[..], &pss].concat()).contains("Verified Successfully"));
}

/// OpenSSL makes the key of a web server: the file of the key has nothing but where to find it. Clients connect by TLS 1.3, in each handshake
/// of which the key signs.
#[test]
fn openssl_makes_a_key_and_serves_tls_with_it() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256", "");
    let host = Openssl::new(&group);
    let uri = "pkcs11_uri:pkcs11:token=theta-group;object=www;id=%07";
    let words =
        ["genpkey", "-propquery", "?provider=pkcs11", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
    host.run(&[&words[..], &["-pkeyopt", uri, "-out", "key.pem"]].concat());
    let key = fs::read_to_string(host.path().join("key.pem")).unwrap();
    assert!(key.contains("BEGIN PKCS#11 PROVIDER URI") && !key.contains("PRIVATE KEY"), "{key}");
    assert!(fs::read_to_string(group.path().join("bindings.toml")).unwrap().contains("zone-ecdsa-p256-1@1"));
    host.run(&["req", "-x509", "-new", "-key", "key.pem", "-subj", "/CN=localhost", "-days", "30", "-out", "www.pem"]);

    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut serve = host.command(&["s_server", "-accept", &port, "-key", "key.pem", "-cert", "www.pem", "-www"]);
    let mut server = Ended(serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let connect = || {
        let mut client = Command::new("openssl");
        client.args([
            "s_client",
            "-connect",
            &format!("127.0.0.1:{port}"),
            "-CAfile",
            "www.pem",
            "-verify_return_error",
            "-brief",
        ]);
        let output = client.current_dir(host.path()).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    until("the server serves", Duration::from_secs(30), || {
        assert_eq!(server.0.try_wait().unwrap(), None, "the server has ended");
        connect().contains("CONNECTION ESTABLISHED")
    });
    for _ in 0..5 {
        let said = connect();
        for words in ["CONNECTION ESTABLISHED", "TLSv1.3", "Verification: OK", "Signature type: ECDSA"] {
            assert!(said.contains(words), "{words} is not in {said}");
        }
    }
}

/// A process that ends when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
