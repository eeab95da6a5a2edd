//! OpenSSH: somebody logs in with a key of the group, by the module alone.

mod server;

use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

use self::server::Sshd;
use crate::{
    group::{command, configure, log, module, openssl, succeeds, until},
    harness::Group,
};

/// How long too few nodes may keep somebody waiting, with a second for each side's own work.
const TOO_FEW: Duration = Duration::from_secs(3 + 7);

/// A running group with this key, and the module's configuration.
fn group() -> Group {
    let mut group = Group::made_with(&["--keys", "login=ecdsa-p256"]);
    group.start_all();
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    configure(&group, "timeout_ms = 3000\n");
    group
}

/// What `ssh-keygen` shows of the token: one public key.
fn shown(group: &Group) -> String {
    let mut keygen = command(group, "ssh-keygen");
    keygen.arg("-D").arg(module());
    succeeds(keygen)
}

/// Somebody logs in, by the keys of the module alone, and has the server say a word.
fn log_in(group: &Group, sshd: &Sshd) -> Output {
    let mut ssh: Command = command(group, "ssh");
    ssh.args(["-F", "none", "-o", "BatchMode=yes", "-o", "IdentityAgent=none", "-o", "IdentityFile=none"]);
    ssh.arg("-o").arg(format!("UserKnownHostsFile={}", sshd.known_hosts().display()));
    ssh.arg("-I").arg(module()).args(["-p", &sshd.port().to_string(), sshd.user(), "echo a word from $USER"]);
    ssh.output().unwrap()
}

fn is_in(output: &Output) -> bool {
    output.status.success() && String::from_utf8_lossy(&output.stdout) == "a word from somebody\n"
}

/// The key that OpenSSH shows is the group's, with it one logs in, and with another one does not. While too few nodes are up nobody does, and is told so
/// soon.
#[test]
fn ssh_logs_in_with_a_key_of_the_group() {
    let mut group = group();
    let line = shown(&group);
    assert!(line.starts_with("ecdsa-sha2-nistp256 ") && line.lines().count() == 1, "{line}");
    let exported = group.theta(&["keys", "export", "login"]).ok().text();
    group.file("login.pem", exported);
    let mut convert = command(&group, "ssh-keygen");
    convert.args(["-i", "-m", "PKCS8", "-f", "login.pem"]);
    let word = |text: &str| text.split(' ').nth(1).unwrap().trim().to_owned();
    assert_eq!(word(&line), word(&succeeds(convert)));

    let sshd = Sshd::start();
    openssl(group.path(), &["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "other.pem"]);
    openssl(group.path(), &["pkey", "-in", "other.pem", "-pubout", "-out", "other.pub.pem"]);
    let mut convert = command(&group, "ssh-keygen");
    convert.args(["-i", "-m", "PKCS8", "-f", "other.pub.pem"]);
    sshd.let_in(&succeeds(convert));
    let refused = log_in(&group, &sshd);
    assert!(!is_in(&refused) && String::from_utf8_lossy(&refused.stderr).contains("Permission denied"), "{refused:?}");

    sshd.let_in(&line);
    let let_in = log_in(&group, &sshd);
    assert!(is_in(&let_in), "{let_in:?}{}{}", sshd.said(), log(&group));
    assert!(sshd.said().contains("Accepted publickey for somebody"), "{}", sshd.said());

    (2..=4).for_each(|node| group.kill(node));
    let began = Instant::now();
    let refused = log_in(&group, &sshd);
    assert!(!is_in(&refused) && began.elapsed() < TOO_FEW, "{refused:?} after {:?}", began.elapsed());
    assert!(log(&group).contains("signing with login failed"), "{}", log(&group));
    (2..=3).for_each(|node| group.start(node));
    (2..=3).for_each(|node| group.await_up(node));
    until("one logs in again", Duration::from_secs(30), || is_in(&log_in(&group, &sshd)));
}
