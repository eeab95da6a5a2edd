//! What BIND could not sign while too few nodes were there. It keeps changes, and looks at them when there is another one: `theta pkcs11 watch` has it make
//! one, by the script that the guide has.

use std::{env, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use super::server::{Bind, PATIENCE};
use crate::{
    generation::pooled,
    group::{log, until},
    harness::Group,
    knot::resume::{Watch, watched},
};

/// Where the guide has the script, between these lines.
const GUIDE: &str = include_str!("../../../../../docs/guides/pkcs11.md");
const BEGINS: &str = "```sh\n#!/bin/sh\n# Counts the serial";
const ENDS: &str = "\n```\n";

/// Makes a program of this text, in a folder of the group's.
fn make_program(group: &Group, name: &str, text: &str) {
    let program = group.path().join(group.file(name, text));
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The guide's script for this server, which waits for so many seconds. It finds the tools in PATH, as an operator's does.
fn sign_again(group: &Group, bind: &Bind, seconds: u32) -> Command {
    let (_, rest) = GUIDE.split_once(BEGINS).unwrap();
    let script = format!("{}{}", &BEGINS[6..], rest.split_once(ENDS).unwrap().0);
    let usual = "\nport=53 seconds=60\n";
    assert_eq!(script.matches(usual).count(), 1, "{script}");
    let script = script.replace(usual, &format!("\nport={} seconds={seconds}\n", bind.port()));
    let name = format!("tools/sign-again-{seconds}");
    fs::create_dir_all(group.path().join("tools")).unwrap();
    make_program(group, &name, &script);
    let mut libraries = None;
    for (name, words) in [("dig", &[][..]), ("nsupdate", &[]), ("rndc", &["-c", "rndc.conf"])] {
        let tool = bind.tool(name, words);
        let folder = tool.get_current_dir().unwrap().display().to_string();
        let words: Vec<_> = tool.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let program = Path::new(tool.get_program()).display();
        make_program(
            group,
            &format!("tools/{name}"),
            &format!("#!/bin/sh\ncd '{folder}' && exec '{program}' {} \"$@\"\n", words.join(" ")),
        );
        libraries = tool.get_envs().next().and_then(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    }
    let mut command = Command::new(group.path().join(name));
    command.envs(libraries);
    let places = env::var_os("PATH").unwrap();
    let places = [group.path().join("tools")].into_iter().chain(env::split_paths(&places));
    command.env("PATH", env::join_paths(places).unwrap());
    command
}

/// The nodes are killed, a name is added meanwhile, and the nodes are started again. Nobody asks for anything after that.
#[test]
fn what_bind_could_not_sign_is_signed_when_the_nodes_are_back() {
    let mut group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "timeout_ms = 6000\n");
    let bind = Bind::start(&group, None, "A 13 2 ");
    // The last that BIND has to sign by itself, some seconds after its start.
    until("the parent is told of the key", PATIENCE, || bind.verify().contains("\tCDNSKEY\t"));
    let watch = Watch::start(&group, &sign_again(&group, &bind, 60));
    (2..=4).for_each(|node| group.kill(node));
    until("it is seen that too few are there", PATIENCE, || watched(&group).contains("too few nodes are there"));
    bind.update("mail");
    until("BIND cannot sign the change", 3 * PATIENCE, || bind.said().contains("receive_secure_serial: failure"));
    assert!(log(&group).contains("signing with zone-ecdsa-p256-"), "{}", log(&group));
    assert_eq!(bind.ask("mail.example"), "");
    assert!(!watched(&group).contains("running"), "{}", watched(&group));
    // It would be run again: nothing was signed.
    let code = sign_again(&group, &bind, 3).output().unwrap().status.code();
    assert_eq!(code, Some(1), "{}", bind.said());

    (2..=4).for_each(|node| group.start(node));
    let said = || format!("{}{}", watched(&group), bind.said());
    until("the command is over", 3 * PATIENCE, || watched(&group).contains("\nok "));
    let answer = bind.ask("mail.example");
    assert!(answer.contains("192.0.2.7") && answer.contains("A 13 2 "), "{answer}{}", said());
    assert!(watched(&group).contains("enough nodes are back: running"), "{}", said());
    drop(watch);
    bind.verify();
    bind.validate("mail.example");
}
