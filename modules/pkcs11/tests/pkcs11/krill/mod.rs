//! Krill, the certificate authority of the RPKI, as trust anchor, as host of other authorities and as parent of one with a Krill of its own, with keys of five
//! registries, of which three sign; `rpki-client` judges what is published, from the trust anchor's locator to validated payloads, and Routinator comes to the same.

mod anchor;
mod instance;

use std::{fs, time::Duration};

use theta_knot::server::free_port;

use self::{anchor::Anchor, instance::Instance};
use crate::{
    group::{configure, log, until},
    harness::Group,
};

/// Private keys of RSA whose primes are safe. They share primes, six in all: each is a key of its own, and none is for anything but tests.
const KEYS: &str = include_str!("keys.pem");
const END: &str = "-----END PRIVATE KEY-----\n";

/// How long Krill has for what it does at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long it has until it gives up: it asks for a signature four times, with pauses, and a request of an authority below takes several.
const LONGER: Duration = Duration::from_secs(180);

/// Five registries, three of which sign, with a pool of keys for Krill, whose module waits so long for nodes.
fn group(timeout_ms: u32) -> Group {
    let mut group = Group::made_with(&["--nodes", "5", "--threshold", "3", "--no-keys"]);
    for (key, number) in KEYS.split_inclusive(END).zip(1..) {
        group.file("rsa.pem", key);
        let name = format!("rpki-sh00-pkcs1-sha256-{number}");
        group.theta(&["keys", "import", "--name", &name, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
    }
    group.start_all();
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    configure(&group, &format!("pool = \"rpki\"\ntimeout_ms = {timeout_ms}\n"));
    group
}

/// A registry of its own below the trust anchor: its addresses and its number, and keys of the group.
fn host_registry(krill: &Anchor) {
    let resources = ["-4", "10.0.0.0/16", "-a", "AS64496"];
    krill.add_authority("reg", (krill, "testbed"), &resources);
    until("the registry is certified and has published", PATIENCE, || krill.files("mft").len() == 3);
}

/// A member of that registry, whose Krill is its own, in another folder and with keys in files.
fn delegate(group: &Group, krill: &Anchor) -> Instance {
    let folder = group.path().join("member");
    fs::create_dir(&folder).unwrap();
    let own = Instance::start(folder, free_port().unwrap(), "", None);
    own.add_authority("member", (krill, "reg"), &["-4", "10.0.128.0/17"]);
    until("the member is certified and has published", PATIENCE, || krill.files("mft").len() == 4);
    own
}

#[test]
fn krill_signs_from_the_trust_anchor_to_route_origins_with_keys_that_nobody_has() {
    let mut group = group(6_000);
    let krill = Anchor::start(&group);
    host_registry(&krill);
    // The trust anchor, the authority below it, the registry.
    assert_eq!(krill.validated(3), []);
    let add = |origin: &str| krill.ask(&["roas", "update", "--ca", "reg", "--add", origin]);
    // One registry is away, which Krill does not notice.
    group.kill(5);
    add("10.0.0.0/24 => 64496").unwrap_or_else(|error| panic!("{error} {}", krill.said()));
    until("the route origin is published", PATIENCE, || krill.files("roa").len() == 1);
    let first = vec![(64_496, "10.0.0.0/24".to_owned())];
    assert_eq!(krill.validated(3), first);
    let bound = fs::read_to_string(group.path().join("bindings.toml")).unwrap();
    assert!(bound.matches("state = \"bound\"").count() >= 7, "{bound}");

    // Two are left, too few: Krill refuses, and what is published stays as it is.
    (3..=4).for_each(|node| group.kill(node));
    add("10.0.1.0/24 => 64496").unwrap_err();
    assert!(log(&group).contains("failed"), "{}", log(&group));
    assert_eq!(krill.validated(3), first);

    // The one that has been away for longest is the third, and nothing else has to be started again.
    group.start(5);
    group.await_up(5);
    until("Krill signs again", PATIENCE, || add("10.0.2.0/24 => 64496").is_ok());
    until("both are published", PATIENCE, || krill.files("roa").len() == 2);
    let both = [first, vec![(64_496, "10.0.2.0/24".to_owned())]].concat();
    assert_eq!(krill.validated(3), both);
    assert_eq!(krill.routinated(), both.into_iter().collect());
}

/// The nodes sign the certificate of an authority that somebody else runs, and answer it, over the exchanges of RFC 6492 and RFC 8181.
#[test]
fn an_authority_with_a_krill_and_keys_of_its_own_is_certified_by_the_group() {
    let mut group = group(2_000);
    let krill = Anchor::start(&group);
    host_registry(&krill);
    let member = delegate(&group, &krill);
    let add = |origin: &str| member.ask(&["roas", "update", "--ca", "member", "--add", origin]);
    until("the member has its certificate", PATIENCE, || add("10.0.128.0/24 => 64500").is_ok());
    until("its route origin is published", PATIENCE, || krill.files("roa").len() == 1);
    let first = vec![(64_500, "10.0.128.0/24".to_owned())];
    assert_eq!(krill.validated(4), first);

    // It may have more, which takes another certificate, and announces another route; too few nodes are there to give it one, or to publish the other.
    (3..=5).for_each(|node| group.kill(node));
    let more = ["-4", "10.0.64.0/18,10.0.128.0/17"];
    krill.ask(&[&["children", "update", "--ca", "reg", "--child", "member"][..], &more].concat()).unwrap();
    add("10.0.129.0/24 => 64500").unwrap();
    member.ask(&["bulk", "refresh"]).unwrap();
    for (what, words) in [("certificate", ["parents", "statuses"]), ("publication", ["repo", "status"])] {
        let told = || member.ask(&[&words[..], &["--ca", "member"]].concat()).unwrap();
        until(&format!("the member's {what} fails"), LONGER, || told().contains("Status: failure"));
    }
    let refused = add("10.0.64.0/24 => 64500").unwrap_err();
    assert!(refused.contains("not on any of your certificates"), "{refused}");
    assert_eq!(krill.validated(4), first, "what was published stays");

    // One more suffices, and the member asks again.
    group.start(3);
    group.await_up(3);
    until("the member has more", PATIENCE, || {
        member.ask(&["bulk", "refresh"]).unwrap();
        add("10.0.64.0/24 => 64500").is_ok()
    });
    member.ask(&["bulk", "sync"]).unwrap();
    until("all are published", PATIENCE, || krill.files("roa").len() == 3);
    let all = ["10.0.64.0/24", "10.0.128.0/24", "10.0.129.0/24"].map(|prefix| (64_500, prefix.to_owned()));
    assert_eq!(krill.validated(4), all);
    assert_eq!(krill.routinated(), all.into());
}
