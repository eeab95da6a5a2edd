//! The code in `generated` agrees with the `.proto` files. With `THETA_WRITE_PROTO` set it is written instead of compared.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in their helpers too")]

mod services;

use std::{env, fs, path::Path};

use services::Services;

const FILES: [&str; 9] = [
    "theta/v1/types.proto",
    "theta/v1/protocol.proto",
    "theta/v1/scheme.proto",
    "theta/v1/keys.proto",
    "theta/v1/audit.proto",
    "theta/v1/order.proto",
    "theta/v1/peer.proto",
    "theta/v1/host.proto",
    "theta/v1/agent.proto",
];

/// Compiles the files into this folder, with a compiler that is written in Rust.
fn generate(here: &Path, to: &Path) {
    let mut compiler = protox::Compiler::new([here.join("proto")]).unwrap();
    compiler.include_imports(true).include_source_info(true).open_files(FILES).unwrap();
    fs::write(to.join("descriptors.bin"), compiler.encode_file_descriptor_set()).unwrap();
    let mut generator = prost_build::Config::new();
    generator.bytes(["."]).out_dir(to).service_generator(Box::new(Services::new()));
    generator.compile_fds(compiler.file_descriptor_set()).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

#[test]
fn the_generated_code_is_what_the_proto_files_say() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kept = here.join("generated");
    if env::var_os("THETA_WRITE_PROTO").is_some() {
        return generate(here, &kept);
    }
    let fresh = tempfile::tempdir().unwrap();
    generate(here, fresh.path());
    assert_eq!(names(&kept), names(fresh.path()), "`cargo xtask proto` writes these files");
    for name in names(&kept) {
        let same = fs::read(kept.join(&name)).unwrap() == fs::read(fresh.path().join(&name)).unwrap();
        assert!(same, "generated/{name} is not what the .proto files say: `cargo xtask proto` writes it anew");
    }
}
