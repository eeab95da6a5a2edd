//! What a name server could not sign while too few nodes were there is signed when they are back, and nobody asks for it again: `theta pkcs11 watch`
//! has the server make up for it.

use std::{
    fs::{self, File},
    process::{Child, Command, Stdio},
};

use super::{PATIENCE, start_with};
use crate::{
    generation::pooled,
    group::{command, host_program, log, until},
    harness::{EXE, Group},
};

/// The command that watches, which is killed when this is dropped.
pub(crate) struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Watch {
    /// Has this command run whenever enough nodes are back. What is said is in `watch.out`.
    pub(crate) fn start(group: &Group, run: &Command) -> Self {
        let options = ["--config", "pkcs11.toml", "--every", "500ms", "--timeout", "2s"];
        Self::start_with(group, &options, run)
    }

    /// The same with these options.
    pub(crate) fn start_with(group: &Group, options: &[&str], run: &Command) -> Self {
        let mut watch = command(group, EXE);
        // Where the libraries of a program are that was unpacked.
        watch.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        watch.args(["pkcs11", "watch", "--client", "host.client"]).args(options);
        watch.arg("--").arg(run.get_program()).args(run.get_args());
        let out = File::create(group.path().join("watch.out")).unwrap();
        let child = watch.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap();
        Self(child)
    }
}

pub(crate) fn watched(group: &Group) -> String {
    fs::read_to_string(group.path().join("watch.out")).unwrap_or_default()
}

/// The zone is in a file, whose change Knot cannot sign: it serves the zone as it was, and by itself looks at the file no more. The nodes are started
/// again, and nothing else is done.
#[test]
fn what_could_not_be_signed_is_signed_when_the_nodes_are_back() {
    let mut group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "timeout_ms = 6000\n");
    let knot = start_with(&group, "ecdsap256sha256", super::RECORDS);
    knot.await_signed(PATIENCE).unwrap();
    let mut knotc = host_program(&group, "knotc");
    knotc.args(["-c", "knot.conf", "-b", "-t", "60", "zone-reload", "example."]);
    let watch = Watch::start(&group, &knotc);

    (2..=4).for_each(|node| group.kill(node));
    until("it is seen that too few are there", PATIENCE, || watched(&group).contains("too few nodes are there"));
    assert!(watched(&group).contains("takes 3 nodes that reach each other"), "{}", watched(&group));
    let zone = fs::read_to_string(knot.zone_file()).unwrap();
    let serial = zone.lines().find_map(|line| line.split_once("\tSOA\t")?.1.split(' ').nth(2)).unwrap();
    let next = (serial.parse::<u32>().unwrap() + 1).to_string();
    let soa = zone.lines().find(|line| line.contains("\tSOA\t") && !line.contains("RRSIG")).unwrap();
    let changed = zone.replace(soa, &soa.replacen(&format!(" {serial} "), &format!(" {next} "), 1));
    fs::write(knot.zone_file(), format!("{changed}mail.example.\t1\tA\t192.0.2.7\n")).unwrap();
    assert!(!knot.tell(&["zone-reload", "example."]), "{}", knot.said());
    assert!(log(&group).contains("signing with zone-ecdsa-p256-"), "{}", log(&group));
    assert_eq!(knot.ask("mail.example.").unwrap(), "");
    let answer = knot.ask("www.example.").unwrap();
    assert!(answer.contains("192.0.2.1") && answer.contains("A 13 2 "), "the zone is served as it was: {answer}");
    assert!(!watched(&group).contains("running"), "{}", watched(&group));

    (2..=4).for_each(|node| group.start(node));
    until("what was missed is signed", PATIENCE, || knot.ask("mail.example.").unwrap().contains("A 13 2 "));
    until("the command is over", PATIENCE, || watched(&group).contains("ok "));
    assert_eq!(watched(&group).matches("enough nodes are back: running").count(), 1, "{}", watched(&group));
    knot.verify().unwrap();
    drop(watch);
}

/// What has to be renewed is renewed by Knot itself: it tries again after `rrsig-pre-refresh`.
#[test]
fn signatures_that_could_not_be_renewed_are_renewed_when_the_nodes_are_back() {
    let policy = "ecdsap256sha256\n    rrsig-lifetime: 40\n    rrsig-refresh: 32\n    rrsig-pre-refresh: 2";
    let mut group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "timeout_ms = 2000\n");
    let knot = start_with(&group, policy, super::RECORDS);
    knot.await_signed(PATIENCE).unwrap();
    (3..=4).for_each(|node| group.kill(node));
    until("Knot cannot renew its signatures", PATIENCE, || knot.said().contains("zone event 're-sign' failed"));
    let before = knot.ask("www.example.").unwrap();
    assert!(before.contains("A 13 2 "), "{before}");
    (3..=4).for_each(|node| group.start(node));
    until("Knot renews them by itself", PATIENCE, || {
        let now = knot.ask("www.example.").unwrap();
        now.contains("A 13 2 ") && now != before
    });
    knot.verify().unwrap();
}
