//! A zone that denies names by their hashes: `dnssec-signzone` has the whole ring signed at once, and never a part of it, as `named` would.

use std::{fs, path::Path, process::Output};

use theta_dnssec::denial::hashed::Parameters;

use super::{
    bound,
    server::{printed, signer},
};
use crate::{
    group::{host_program, succeeds},
    harness::Group,
    knot::{RECORDS, agents::prepared},
};

/// A name without records of its own above another, and a delegation without keys.
const MORE: &str = "a.deep A 192.0.2.3\nsub NS ns.sub\nns.sub A 192.0.2.9\n";

/// Has the keys of the printed policy made, in `keys` of this folder.
fn make_keys(group: &Group, folder: &Path) {
    fs::create_dir_all(folder.join("keys")).unwrap();
    let policy = printed(group, "bind");
    let policy = policy.split("zone \"").next().unwrap();
    fs::write(folder.join("policy.conf"), policy).unwrap();
    fs::write(folder.join("openssl.cnf"), printed(group, "openssl")).unwrap();
    let mut keygen = signer(group, folder, "dnssec-keygen");
    keygen.args(["-l", "policy.conf", "-k", "threshold", "-K", "keys", "example"]).current_dir(folder);
    succeeds(keygen);
}

/// Signs the zone from nothing, with these options about denials.
fn sign(group: &Group, folder: &Path, options: &[&str]) -> Output {
    let mut sign = signer(group, folder, "dnssec-signzone");
    sign.args(["-S", "-K", "keys", "-o", "example", "-f", "example.signed"]).args(options).arg("example.zone");
    sign.current_dir(folder).output().unwrap()
}

/// The ring of the operators' copies is signed. With a salt, with opt-out, or by names in the place of hashes nothing is.
#[test]
fn a_ring_of_hashes_is_signed_by_dnssec_signzone() {
    let records = format!("{RECORDS}{MORE}");
    let (group, agents) = prepared(("ecdsa-p256", "sign"), 2..=4, &records, Some(&Parameters::default()), "");
    let folder = group.path().join("signer");
    make_keys(&group, &folder);
    assert_eq!(bound(&group), 2);
    fs::write(folder.join("example.zone"), &records).unwrap();
    let signed = folder.join("example.signed");
    for (options, objection) in [
        (&["-3", "aabb"][..], "the NSEC3 record has 0 iterations and the salt aabb"),
        (&["-3", "-", "-A"], "the NSEC3 record has opt-out"),
        (&[], "the operators have agreed on NSEC3 with 0 iterations and no salt, and not on NSEC"),
    ] {
        let output = sign(&group, &folder, options);
        assert!(!output.status.success() && !signed.exists(), "{options:?}: {output:?}");
        for node in ["2", "3", "4"] {
            let said = group.theta(&["audit", "show", "--node", node, "--refused", "--last", "1000"]).ok().text();
            assert!(said.contains(&format!("agent zone refuses it: {objection}")), "{options:?}: {said}");
        }
    }

    let output = sign(&group, &folder, &["-3", "-"]);
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&signed).unwrap();
    assert!(text.contains("NSEC3PARAM") && !text.contains("\tNSEC "), "{text}");
    // The top, ns, www, a.deep, what is above it, and the delegation.
    assert_eq!(text.matches(" IN NSEC3 1 0 0 - ").count(), 6, "{text}");
    let mut verify = host_program(&group, "ldns-verify-zone");
    verify.arg(&signed);
    assert!(succeeds(verify).contains("Zone is verified and complete"));
    drop(agents);
}
