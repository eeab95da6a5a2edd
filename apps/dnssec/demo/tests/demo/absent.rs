//! What is not there is said, and nothing begins.

use crate::demo;

#[test]
fn a_missing_name_server_is_said_with_its_package() {
    let dir = tempfile::tempdir().unwrap();
    let mut demo = demo();
    demo.arg("--dir").arg(dir.path().join("zone"));
    // Daemons are found all the same where the system has them; the tools are not.
    demo.env("PATH", dir.path()).env("XDG_CACHE_HOME", dir.path()).env_remove("THETA_PKCS11_HOSTS");
    let output = demo.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is missing: install Debian's package") && said.contains("cargo xtask dns"), "{said}");
    assert!(!dir.path().join("zone").exists());
}
