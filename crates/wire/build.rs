//! Compiles the .proto files with a compiler written in Rust: nothing to install.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = [
        "theta/v1/types.proto",
        "theta/v1/protocol.proto",
        "theta/v1/scheme.proto",
        "theta/v1/keys.proto",
        "theta/v1/audit.proto",
        "theta/v1/peer.proto",
    ];
    let descriptors = protox::Compiler::new(["proto"])?
        .include_imports(true)
        .include_source_info(true)
        .open_files(files)?
        .encode_file_descriptor_set();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), &descriptors)?;
    tonic_prost_build::configure().bytes(".").compile_fds(prost::Message::decode(descriptors.as_slice())?)?;
    Ok(())
}
