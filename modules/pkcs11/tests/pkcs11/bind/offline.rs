//! A key of the keys that is kept offline, with BIND's own tools: `dnssec-ksr` asks for signatures where the zone is signed, and makes them ahead where the
//! group's nodes come up for it. The zone's own keys are in BIND's files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use theta_dnssec::{consent::Terms, sources::Sources};

use super::server::{Bind, PATIENCE, TIMES, printed, signer};
use crate::{
    group::{host_program, log, succeeds, until},
    harness::Group,
    knot::{
        RECORDS,
        agents::{prepared_with, sources},
    },
};

/// Signatures of two weeks, made anew after one.
const POLICY: &str =
    "offline-ksk yes; signatures-validity P14D; signatures-validity-dnskey P14D; signatures-refresh P7D;";
const KEY: &str = "lifetime unlimited algorithm ecdsap256sha256;";
const DAYS: u32 = 30;

/// The policy of the zone's server, which has the keys of the zone.
fn policy_of_zone() -> String {
    policy(&format!("ksk {KEY} zsk {KEY}"))
}

fn policy(keys: &str) -> String {
    format!("dnssec-policy \"offline\" {{\n  {POLICY}\n  {TIMES}\n  keys {{ {keys} }};\n}};\n")
}

fn zone_server(group: &Group) -> PathBuf {
    group.path().join("zone-server")
}

/// `dnssec-ksr`, which does this in the folder of a policy and its keys, for all the days.
fn ksr(mut program: Command, folder: &Path, words: &[&str]) -> Command {
    program.args(["-l", "policy.conf", "-k", "offline", "-K", "keys", "-i", "now", "-e", &format!("+{DAYS}d")]);
    program.args(words).arg("example").current_dir(folder);
    program
}

/// Has the zone's keys made and asks for signatures of their set: the request, which is in `zone-server/request.ksr`, too.
fn request(group: &Group) -> String {
    let folder = zone_server(group);
    let request = folder.join("request.ksr");
    if !request.exists() {
        fs::create_dir_all(folder.join("keys")).unwrap();
        fs::write(folder.join("policy.conf"), policy_of_zone()).unwrap();
        let zone_ksr = |command| succeeds(ksr(host_program(group, "dnssec-ksr"), &folder, &[command]));
        zone_ksr("keygen");
        fs::write(&request, zone_ksr("request")).unwrap();
    }
    fs::read_to_string(request).unwrap()
}

/// What the operators' nodes make of the request: signatures, in `zone-server/response.skr`. Their agents let signatures of keys begin so many days ahead.
fn signed_ahead(days: u32) -> (Group, Result<String, String>) {
    let (group, agents) = prepared_with(("ecdsa-p256", "sign"), 1..=4, RECORDS, "", |group, folder| {
        // example. 1 IN DNSKEY 256 3 13 KEY, the key in several words.
        let asked = request(group);
        let zone_keys =
            asked.lines().filter_map(|line| line.split_once("DNSKEY")).map(|(_, data)| format!("zsk {data}\n"));
        let theirs = group.theta(&["keys", "export", "zone-ecdsa-p256-1", "--format", "dnskey"]).ok().text();
        let keys = group.path().join("offline.keys");
        fs::write(&keys, format!("ksk {theirs}{}", zone_keys.collect::<String>())).unwrap();
        let terms = Terms { ahead_of_keys: days * 86_400, ..Terms::lasting(15 * 86_400) };
        Sources { keys, terms, ..sources(group, folder, None) }
    });
    // Where the key of the keys is, there is no server; the key store is as printed.
    let folder = group.path().join("key-server");
    fs::create_dir_all(folder.join("keys")).unwrap();
    let store = printed(&group, "bind").split("dnssec-policy").next().unwrap().to_owned();
    let policies = store + &policy(&format!("ksk key-store \"threshold\" {KEY} zsk {KEY}"));
    fs::write(folder.join("policy.conf"), policies).unwrap();
    fs::write(folder.join("openssl.cnf"), printed(&group, "openssl")).unwrap();
    let mut made = signer(&group, &folder, "dnssec-keygen");
    made.args(["-l", "policy.conf", "-k", "offline", "-f", "KSK", "-K", "keys", "example"]).current_dir(&folder);
    succeeds(made);
    let asked = zone_server(&group).join("request.ksr").display().to_string();
    let mut sign = ksr(signer(&group, &folder, "dnssec-ksr"), &folder, &["-f", &asked, "sign"]);
    let output = sign.output().unwrap();
    drop(agents);
    if !output.status.success() {
        return (group, Err(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let response = String::from_utf8(output.stdout).unwrap();
    fs::write(zone_server(&group).join("response.skr"), &response).unwrap();
    (group, Ok(response))
}

/// The nodes see what they sign, of which most begins in weeks; the zone's server has the signatures and never the key.
#[test]
fn bind_serves_what_an_offline_key_has_signed_ahead() {
    let (group, response) = signed_ahead(DAYS + 1);
    let response = response.unwrap_or_else(|said| panic!("{said}{}", log(&group)));
    // At the start and after each week: of the keys, and of what the parent is told of them in two ways.
    for set in ["DNSKEY", "CDNSKEY", "CDS"] {
        assert_eq!(response.matches(&format!("RRSIG\t{set} 13 1 1 ")).count(), 5, "{response}");
    }
    let zone = format!(
        "zone \"example\" {{\n  type primary;\n  file \"example.zone\";\n  dnssec-policy \"offline\";\n  inline-signing yes;\n  \
         key-directory \"{}\";\n  checkds no;\n  allow-transfer {{ 127.0.0.1; }};\n}};\n",
        zone_server(&group).join("keys").display()
    );
    let mut bind = Bind::launch(&group, &(policy_of_zone() + &zone));
    let response = zone_server(&group).join("response.skr").display().to_string();
    until("the server takes the signatures", PATIENCE, || bind.tries(&["skr", "-import", &response, "example"]));
    bind.await_signed("A 13 2 ");
    let served = bind.verify();
    assert_eq!(served.lines().filter(|line| line.contains("\tDNSKEY\t257 ")).count(), 1, "{served}");
    // From the key that has signed ahead down to an address.
    bind.validate("www.example");
}

/// Operators who have not said so sign nothing ahead.
#[test]
fn nobody_signs_ahead_for_bind_whom_no_operator_lets() {
    let (group, response) = signed_ahead(0);
    assert!(response.is_err(), "{response:?}");
    let said = group.theta(&["audit", "show", "--node", "2", "--refused", "--last", "100"]).ok().text();
    assert!(said.contains("agent zone refuses it: "), "{said}");
}
