//! A key of the keys that is kept offline: the group's nodes come up for it, and sign ahead what the zone's server asks for. The zone's own keys are
//! Knot's.

use std::{fs, path::Path};

use theta_knot::{
    places::Places,
    server::{Knot, Setup},
};

use super::{
    PATIENCE, RECORDS, ZONE,
    agents::{in_force, program::Program},
    config,
};
use crate::{
    generation::pooled,
    group::{host_program, log, succeeds},
    harness::Group,
};

/// Times as operators may have them: signatures of two weeks, made anew after one.
const POLICY: &str =
    "ecdsap256sha256\n    offline-ksk: on\n    manual: on\n    rrsig-lifetime: 14d\n    rrsig-refresh: 7d";
const DAYS: u32 = 30;

/// The server of the zone, which has its own key of the zone, and none of its keys.
fn config_of_zone() -> String {
    let times = "dnskey-ttl: 1\n    zone-max-ttl: 1\n    propagation-delay: 1";
    let policy = format!("policy:\n  - id: offline\n    algorithm: {POLICY}\n    {times}\n");
    let zone = "zone:\n  - domain: example.\n    dnssec-signing: on\n    dnssec-policy: offline\n    zonefile-load: difference\n";
    policy + zone
}

/// Where the zone's server is, and what it asks for.
fn request(group: &Group) -> String {
    let folder = group.path().join("zone-server");
    let request = folder.join("request.ksr");
    if !request.exists() {
        fs::create_dir_all(folder.join("db")).unwrap();
        let database = format!("database:\n  storage: \"{}/db\"\n", folder.display());
        fs::write(folder.join("keymgr.conf"), database + &config_of_zone()).unwrap();
        keymgr(group, &folder, &["generate", "algorithm=ecdsap256sha256", "ksk=no", "zsk=yes"]);
        let asked = keymgr(group, &folder, &["generate-ksr", "+0", &format!("+{DAYS}d")]);
        fs::write(&request, asked).unwrap();
    }
    fs::read_to_string(request).unwrap()
}

/// `keymgr` with the configuration in this folder.
fn keymgr(group: &Group, folder: &Path, words: &[&str]) -> String {
    let mut keymgr = host_program(group, "keymgr");
    keymgr.arg("-c").arg(folder.join("keymgr.conf")).arg(ZONE).args(words);
    succeeds(keymgr)
}

/// What operators say who have the key of the keys, with `theta-dnssec agent`: nothing is signed for more than a day but sets of keys, and those ahead.
const AGREED: &str =
    "--zone-file example.zone --most-days 1 --most-key-days 15 --key-days-ahead 31 --key-ttl 1 --most-hashes 20";

/// Signs ahead where all nodes ask agents, which know what is asked for if they are told.
fn signed_ahead(is_told: bool) -> (Group, Result<(), String>) {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256", "");
    let asked = request(&group);
    let zone_keys: String = asked
        .split("DNSKEY")
        .skip(1)
        .map(|record| {
            let data = record.split(')').next().unwrap().replace(['(', '\n', '\t'], " ");
            format!("zsk {data}\n")
        })
        .collect();
    let theirs = group.theta(&["keys", "export", "zone-ecdsa-p256-1", "--format", "dnskey"]).ok().text();
    group.file("zone.keys", format!("ksk {theirs}{zone_keys}"));
    let request = format!(" --key-request {}", group.path().join("zone-server/request.ksr").display());
    let options = AGREED.to_owned() + if is_told { &request } else { "" };
    let agents = group.numbers().map(|node| {
        fs::write(group.node_dir(node).join("example.zone"), RECORDS).unwrap();
        Program::start(&group, node, &options)
    });
    let agents: Vec<Program> = agents.collect();
    in_force(&group, 1..=4, "zone-ecdsa-p256-1", "sign-digest");
    // Where the key of the keys is, there is no server.
    let config = config(&group, POLICY);
    let folder = group.path().join("key-server");
    fs::create_dir_all(folder.join("db")).unwrap();
    let database = format!("database:\n  storage: \"{}/db\"\n", folder.display());
    fs::write(folder.join("keymgr.conf"), database + &config).unwrap();
    keymgr(
        &group,
        &folder,
        &[
            "generate",
            "algorithm=ecdsap256sha256",
            "ksk=yes",
            "zsk=no",
            "created=-1h",
            "publish=-1h",
            "ready=-1h",
            "active=-1h",
        ],
    );
    let mut sign = host_program(&group, "keymgr");
    sign.arg("-c")
        .arg(folder.join("keymgr.conf"))
        .args([ZONE, "sign-ksr"])
        .arg(group.path().join("zone-server/request.ksr"));
    let output = sign.output().unwrap();
    drop(agents);
    if !output.status.success() {
        return (group, Err(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    fs::write(group.path().join("zone-server/response.skr"), output.stdout).unwrap();
    (group, Ok(()))
}

/// With P-256 the nodes see digests, of signatures that begin in days and weeks. Each operator runs the program.
#[test]
fn digests_of_what_an_offline_key_signs_ahead_are_recognised() {
    let (group, signed) = signed_ahead(true);
    assert_eq!(signed, Ok(()), "{}", log(&group));
    assert!(!log(&group).contains("agent zone"), "{}", log(&group));
    let folder = group.path().join("zone-server");
    let response = folder.join("response.skr");
    let text = fs::read_to_string(&response).unwrap();
    // At the start, after each week, and at the end.
    assert_eq!(text.matches("RRSIG DNSKEY 13 1 1 ").count(), 6, "{text}");
    let response = response.to_string_lossy();
    keymgr(&group, &folder, &["validate-skr", &response]);
    keymgr(&group, &folder, &["import-skr", &response]);
    let config = config_of_zone();
    let setup = Setup { folder: &folder, zone: ZONE, records: RECORDS, config: &config };
    let knot = Knot::start_within(&Places::of_this_machine(), setup, 3 * PATIENCE).unwrap();
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    let zone = fs::read_to_string(knot.zone_file()).unwrap();
    assert_eq!(zone.lines().filter(|line| line.contains("\tDNSKEY\t257 ")).count(), 1, "{zone}");
}

/// Who is not told what is asked for recognises nothing of it but what begins now.
#[test]
fn nobody_signs_ahead_what_no_operator_was_told() {
    let (group, signed) = signed_ahead(false);
    assert!(signed.is_err(), "{signed:?}");
    let said = group.theta(&["audit", "show", "--node", "2", "--refused", "--last", "100"]).ok().text();
    assert!(
        said.contains("agent zone refuses it: no record set of the zone has this digest with times of now"),
        "{said}"
    );
    let all = group.theta(&["audit", "show", "--node", "2", "--last", "100"]).ok().text();
    assert!(all.lines().any(|line| line.contains("sign-digest") && line.contains("allowed")), "{all}");
}
