//! How the module is linked.

fn main() {
    // A host may unload the module while a thread of its client runs. The code of that thread must stay where it is.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
