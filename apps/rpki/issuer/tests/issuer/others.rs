//! What others do: registries that have new data earlier or later, issuers before this one, and a clock that is wrong.

use std::collections::BTreeSet;

use theta_rpki_issuer::issue::{IssueError, Report};

use crate::world::{DAY, HOUR, World, roa};

fn told(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn world() -> World {
    let mut world = World::new();
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
    world.run_well();
    world
}

/// Some days with a run in each hour, after each of which all is as it should be; what the last run said.
fn days(world: &mut World, days: i64, told: &BTreeSet<String>) -> Report {
    let mut report = Report::default();
    for _ in 0..days * 24 {
        world.now += HOUR - 2;
        report = world.run();
        // What is asked for a second time in a run begins a second later.
        world.now += 2;
        assert_eq!(world.validated(), *told);
    }
    report
}

fn says(report: &Report, words: &str) {
    assert!(report.failures.iter().any(|failure| failure.reason.contains(words)), "{report:?}");
}

/// What is published is renewed for days while the issuer's registry alone has a statement, which is refused; when all have it, it comes.
fn a_statement_comes_here_first(mut world: World) {
    world.state_that(&roa(64_500, &["192.0.2.0/25"]), true);
    world.issuers = Some(world.statements());
    world.forget_last();
    let report = days(&mut world, 3, &told(&["AS64496"]));
    says(&report, "is authorised by no member's statement");
    world.now += 5;
    world.all_know();
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496", "AS64500"]));
}

/// The issuer's registry has a member's statement, and the others do not yet.
#[test]
fn a_statement_that_only_this_registry_has_does_not_end_what_is_published() {
    a_statement_comes_here_first(world());
}

/// The issuer's registry knows of a withdrawal, and the others do not yet.
#[test]
fn a_withdrawal_that_only_this_registry_has_does_not_end_what_is_published() {
    let mut world = world();
    world.state_that(&roa(64_500, &["192.0.2.0/25"]), true);
    world.now += 5;
    world.run_well();
    world.state_that(&roa(64_500, &["192.0.2.0/25"]), false);
    world.issuers = Some(world.statements());
    world.forget_last();
    let report = days(&mut world, 3, &told(&["AS64496", "AS64500"]));
    says(&report, "is missing, and acme has not withdrawn it");
    world.all_know();
    world.now += 5;
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496"]));
}

/// The issuer's registry has given a member more, and the others have not yet.
#[test]
fn data_that_only_this_registry_has_do_not_end_what_is_published() {
    let mut world = world();
    world.issuers_registry = Some(World::grown());
    let report = days(&mut world, 3, &told(&["AS64496"]));
    let out_of_step = "two registries' data differ about acme: it holds asn: 'AS64496', ipv4: ";
    says(&report, out_of_step);
    says(&report, "by this registry's; one of them is out of step");
    // When all have them, the new certificate comes with its parent's manifest.
    world.set_registry(World::grown());
    world.state_that(&roa(64_500, &["198.51.100.0/24"]), true);
    world.now += 5;
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496", "AS64500"]));
}

/// Whatever is the last thing that is signed before a crash, while a member's certificate changes.
#[test]
fn a_new_certificate_of_a_member_comes_with_its_parents_manifest() {
    for signatures in 0..10 {
        let mut world = world();
        world.set_registry(World::grown());
        world.state_that(&roa(64_500, &["198.51.100.0/24"]), true);
        world.now += 5;
        *world.left.lock().unwrap() = signatures;
        world.run();
        let between = world.validated();
        assert!(between == told(&["AS64496"]) || between == told(&["AS64496", "AS64500"]), "{signatures} {between:?}");
        *world.left.lock().unwrap() = usize::MAX;
        world.now += 1;
        world.run_well();
        assert_eq!(world.validated(), told(&["AS64496", "AS64500"]), "{signatures}");
    }
}

/// A statement's file is deleted at the issuer's registry.
#[test]
fn a_grant_does_not_go_with_its_file() {
    let mut world = world();
    world.issuers = Some(Vec::new());
    let report = days(&mut world, 3, &told(&["AS64496"]));
    says(&report, "counted and counts no more");
}

/// A withdrawal's file is deleted, and that of the grant before it is still there.
#[test]
fn a_withdrawal_does_not_go_with_its_file() {
    let mut world = world();
    let grant = world.statements();
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), false);
    world.now += 5;
    world.run_well();
    assert!(world.validated().is_empty());
    world.issuers = Some(grant);
    world.now += 5;
    world.run_well();
    assert!(world.validated().is_empty());
}

/// The state is lost, or another issuer goes on without it.
#[test]
fn what_an_agent_remembers_takes_the_place_of_a_lost_state() {
    let mut world = world();
    world.state_that(&roa(64_500, &["192.0.2.0/25"]), true);
    world.now += 5;
    world.run_well();
    world.lose_state();
    world.state_that(&roa(64_500, &["192.0.2.0/25"]), false);
    world.now += 5;
    // What it does not know of it cannot revoke.
    says(&world.run(), "it does not revoke");
    let learnt = world.learn();
    assert!(learnt.certificates >= 3 && learnt.keys >= 3, "{learnt:?}");
    world.now += 5;
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496"]));
    assert_eq!(world.learn().certificates, 0, "all is known");
}

/// What it had published without knowing of it the agents tell it.
#[test]
fn what_was_published_and_is_not_known_is_revoked_when_agents_miss_it() {
    let mut world = world();
    world.lose_state();
    world.state_that(&roa(64_500, &["192.0.2.0/25"]), true);
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), false);
    let mut said = String::new();
    for runs in 0.. {
        world.now += 60;
        let report = world.run();
        if report.failures.is_empty() {
            break;
        }
        assert!(runs < 10, "{report:?}");
        said += &report.failures.iter().map(|failure| failure.reason.as_str()).collect::<Vec<_>>().join("; ");
    }
    assert!(said.contains("does not revoke"), "{said}");
    assert_eq!(world.validated(), told(&["AS64500"]));
}

/// The state is lost while something is refused that only this registry has: what is published is renewed all the same.
#[test]
fn what_is_published_is_renewed_without_the_state_it_came_from() {
    let world = world();
    world.lose_state();
    world.learn();
    a_statement_comes_here_first(world);
}

/// An old state is brought back, and takes what an agent remembers: what was published meanwhile stays.
#[test]
fn an_old_state_brings_no_old_manifest_back() {
    let mut world = world();
    let old = std::fs::read(world.state()).unwrap();
    world.state_that(&roa(64_500, &["192.0.2.0/25"]), true);
    world.now += 5;
    world.run_well();
    std::fs::write(world.state(), old).unwrap();
    world.learn();
    // Nothing is signed, so nothing changes.
    for broken in [Some("rpki-acme"), None] {
        (world.broken, world.now) = (broken, world.now + 5);
        assert_eq!(world.run().failures.is_empty(), broken.is_none());
        assert_eq!(world.validated(), told(&["AS64496", "AS64500"]));
    }
}

/// Others have taken as many keys for a content as agents take in a day, and it is not known which: agents say so.
#[test]
fn a_key_that_agents_name_is_used() {
    let mut world = World::new();
    let one = roa(64_496, &["192.0.2.0/24"]);
    (4..8).for_each(|key| world.bind(key, one.digest()));
    world.state_that(&one, true);
    says(&world.run(), "rpki-ee-4 may");
    world.now += 5;
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496"]));
}

/// Whoever could ask before has bound keys of the pool to what is not known here.
#[test]
fn keys_that_are_for_something_else_are_passed_over() {
    let mut world = World::new();
    (0..5).for_each(|key| world.bind(key, [9; 32]));
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
    let mut runs = 0;
    while !world.run().failures.is_empty() {
        (world.now, runs) = (world.now + 60, runs + 1);
        assert!(runs < 12);
    }
    assert!(runs >= 1, "it takes the first ones for free");
    assert_eq!(world.validated(), told(&["AS64496"]));
}

/// Agents say of keys what is not so; when they are back, what was doubted is used.
#[test]
fn keys_that_were_doubted_are_not_lost() {
    let mut world = World::with_pool(3);
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
    world.lies = true;
    for _ in 0..20 {
        world.now += 60;
        assert!(!world.run().failures.is_empty());
    }
    world.lies = false;
    world.now += 60;
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496"]));
}

/// The issuer's clock was wrong once.
#[test]
fn a_clock_that_was_ahead_uses_nothing_up() {
    for ahead in [HOUR, 10 * DAY] {
        let mut world = world();
        world.state_that(&roa(64_500, &["192.0.2.0/25"]), true);
        world.ahead = ahead;
        says(&world.run(), "is not now");
        world.ahead = 0;
        world.now += 60;
        world.run_well();
        assert_eq!(world.validated(), told(&["AS64496", "AS64500"]));
    }
}

#[test]
fn a_long_time_after_the_last_run_nothing_is_done_by_itself() {
    let mut world = world();
    (world.after_break, world.ahead) = (false, 50 * DAY);
    assert!(matches!(world.try_run(), Err(IssueError::Clock(50))));
    (world.ahead, world.now) = (0, world.now + 60);
    world.run_well();
    (world.after_break, world.now) = (true, world.now + 50 * DAY);
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496"]));
}
