//! What is authorised, and what is wrong where.

use std::fs;

use super::Desk;
use crate::issuer::{base64, keys, pool_text, roa};

const CHECK: &str = "check --registry registry.toml --statements statements --overrides overrides --pool pool.keys";

/// A desk where two keys have signed a ROA.
fn desk() -> Desk {
    let desk = Desk::new();
    ["statements/acme", "overrides"].into_iter().for_each(|folder| fs::create_dir_all(desk.path(folder)).unwrap());
    fs::write(desk.path("pool.keys"), pool_text()).unwrap();
    let words = "statement grant --registry registry.toml --member acme --roa AS64496 --prefix 192.0.2.0/24 --from 2020-01-01T00:00:00Z \
                 --until 2998-01-01T00:00:00Z --key 1.key --out statements/acme/1.toml";
    desk.run(words).ok();
    desk.run("statement sign --key 2.key statements/acme/1.toml --yes").ok();
    desk
}

#[test]
fn what_is_authorised_is_said_by_member() {
    let desk = desk();
    let report = desk.run(&format!("{CHECK} --json")).ok().json();
    let acme = &report["members"]["acme"];
    assert_eq!(acme.as_array().unwrap().len(), 1);
    assert_eq!(acme[0]["roa"]["asn"], 64_496);
    assert_eq!(acme[0]["roa"]["prefixes"][0], "192.0.2.0/24");
    assert_eq!(acme[0]["object"], roa(64_496, &["192.0.2.0/24"]).file_name());
    assert!(report["wrong"].as_array().unwrap().is_empty());
    let words = "acme has authorised\n  the ROA of AS64496 for 192.0.2.0/24, until 2998-01-01T00:00:00Z\n";
    desk.run(CHECK).ok().says(words);

    // With no statements nothing is authorised, and nothing is wrong.
    desk.run("check --registry registry.toml").ok().says("acme has authorised nothing");
}

/// What operators state in the member's place is flagged, and the member's own word about the same does not count beside it.
#[test]
fn what_operators_state_in_a_members_place_is_flagged() {
    let desk = desk();
    let state = |act: &str, about: &str, file: &str| {
        let words =
            format!("override {act} --registry registry.toml --member acme {about} --until 2998-01-01T00:00:00Z");
        desk.run_with(&format!("{words} --key 11.key --out overrides/{file}"), &["--reason", "a court"]).ok();
        desk.run(&format!("override sign --registry registry.toml --key 12.key overrides/{file} --yes")).ok();
    };
    state("grant", "--roa AS64500 --prefix 192.0.2.0/25", "1.toml");
    let run = desk.run(CHECK).ok().says("  the ROA of AS64496 for 192.0.2.0/24, until 2998-01-01T00:00:00Z\n");
    let run = run.says("  OVERRIDE: the ROA of AS64500 for 192.0.2.0/25, until 2998-01-01T00:00:00Z\n");
    run.says("\nOVERRIDE: operators grant, in acme's place, the ROA of AS64500 for 192.0.2.0/25 (a court) until 2998");
    state("withdraw", "--roa AS64496 --prefix 192.0.2.0/24", "2.toml");
    let report = desk.run(&format!("{CHECK} --json")).ok().json();
    let acme = report["members"]["acme"].as_array().unwrap();
    assert_eq!((acme.len(), &acme[0]["override"]), (1, &"a court".into()), "{report}");
    assert_eq!(
        (&report["overrides"][1]["act"], &report["overrides"][1]["reason"]),
        (&"withdraw".into(), &"a court".into())
    );
    // One that grants what the member does not hold is wrong.
    let text = desk.text("overrides/1.toml").replace("192.0.2.0/25", "198.51.100.0/25");
    fs::write(desk.path("overrides/3.toml"), text).unwrap();
    let report = desk.run(&format!("{CHECK} --json")).fails(1, "as said above: 1").json();
    assert_eq!(report["wrong"][0]["file"], "overrides/3.toml");
}

#[test]
fn what_is_wrong_is_said_by_file() {
    let desk = desk();
    let grant = "statement grant --registry registry.toml --member acme --aspa AS64496 --provider AS64497 --key 1.key";
    desk.run(&format!("{grant} --out statements/acme/2.toml")).ok();
    fs::write(desk.path("overrides/3.toml"), "digest = 1").unwrap();
    fs::write(desk.path("overrides/notes.txt"), "of no interest").unwrap();
    fs::write(desk.path("pool.keys"), "rpki-ee-0 AAAA").unwrap();
    let run = desk.run(&format!("{CHECK} --json")).fails(1, "as said above: 3");
    let report = run.json();
    let wrong = |number: usize| {
        let of = &report["wrong"][number];
        (of["file"].as_str().unwrap(), of["reason"].as_str().unwrap())
    };
    assert_eq!(wrong(0), ("statements/acme/2.toml", "1 of 2 keys of acme have signed"));
    assert_eq!(wrong(1).0, "overrides/3.toml");
    assert!(wrong(2).0 == "pool.keys" && wrong(2).1.contains("line 1"), "{run:?}");
    assert_eq!(report["members"]["acme"].as_array().unwrap().len(), 1, "the others count all the same");

    desk.run("check --registry pool.keys").fails(1, "pool.keys: ");
    desk.run("check --registry registry.toml --statements nowhere").fails(1, "cannot read nowhere");
}

/// Whoever is given a locator of another anchor, or one that leads elsewhere, takes nothing that is signed here; each has a sentence of its own.
#[test]
fn a_locator_that_does_not_match_is_said_to() {
    let desk = desk();
    let check = |text: &str| {
        fs::write(desk.path("ta.tal"), text).unwrap();
        let run = desk.run(&format!("{CHECK} --tal ta.tal --json"));
        let wrong = run.json()["wrong"].as_array().unwrap().clone();
        assert_eq!(run.code, Some(i32::from(!wrong.is_empty())), "{run:?}");
        assert!(wrong.iter().all(|one| one["file"] == "ta.tal"), "{run:?}");
        wrong.iter().map(|one| one["reason"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let keys = keys();
    let (anchor, acme, foreign) = (base64(keys.anchor), base64(keys.acme), base64(keys.foreign));
    let at = "rsync://rpki.example/ta/ta.cer";
    // Where a web server shows it the data do not say.
    assert!(check(&format!("# ours\n{at}\nhttps://rpki.example/ta.cer\n\n{anchor}\n")).is_empty());
    let [other] = &check(&format!("{at}\n\n{foreign}\n"))[..] else { panic!() };
    assert!(other.starts_with("its key is that of no trust anchor of the registry's data"), "{other}");
    let [below] = &check(&format!("{at}\n\n{acme}\n"))[..] else { panic!() };
    assert!(below.starts_with("its key is that of the authority acme, which is no trust anchor"), "{below}");
    let elsewhere = "rsync://evil.example/ta/ta.cer";
    let said = check(&format!("{at}\n{elsewhere}\n\n{anchor}\n"));
    assert_eq!(said, [format!("it leads to {elsewhere}, and the certificate of ta is published at {at}")]);
    let [none] = &check(at)[..] else { panic!() };
    assert!(none.starts_with("it is no trust anchor locator, which has addresses"), "{none}");
    desk.run(&format!("{CHECK} --tal nowhere.tal")).fails(1, "as said above: 1").says("cannot read");
}
