//! What scenarios may say, and how mistakes in them are named.

use super::*;

#[test]
fn built_in_scenarios_are_sound_and_cover_the_six_schemes() {
    let all: Vec<Scenario> = BUILT_IN.iter().map(|(name, _)| Scenario::load(name).unwrap()).collect();
    let schemes = |wanted: Measure| -> BTreeSet<&str> {
        let of = all.iter().filter(|scenario| scenario.measure == wanted);
        of.flat_map(|scenario| scenario.suites.iter().map(|suite| suite.scheme())).collect()
    };
    for measure in [Measure::Capacity, Measure::Steady] {
        let wanted = BTreeSet::from(["BLS04", "BZ03", "CKS05", "FROST", "SG02", "SH00"]);
        assert_eq!(schemes(measure), wanted, "{measure:?}");
    }
    for measure in [Measure::Capacity, Measure::Steady, Measure::Payload, Measure::Network] {
        assert!(!names_of(measure).is_empty(), "{measure:?}");
    }
    assert!(all.iter().all(|scenario| !scenario.description.is_empty()));
}

#[test]
fn what_is_left_out_has_its_usual_value() {
    let text = "description = \"x\"\nmeasure = \"capacity\"\ngroups = [[2, 4]]\nsuites = [\"frost-ed25519\"]\n[ladder]\nfirst = 4";
    let scenario = Scenario::parse("x", text).unwrap();
    assert_eq!((scenario.profiles.as_slice(), scenario.payloads.as_slice()), (&[LOOPBACK.to_owned()][..], &[256][..]));
    assert_eq!((scenario.time, scenario.patience), (Duration::from_secs(5), Duration::from_secs(10)));
    assert_eq!(scenario.delivery, [Delivery::All]);
    assert_eq!((scenario.ladder.limit, scenario.ladder.refine), (Duration::from_secs(1), 0));
}

#[test]
fn mistakes_are_named() {
    let sound =
        "description = \"x\"\nmeasure = \"capacity\"\ngroups = [[3, 7]]\nsuites = [\"sg02-*\"]\n[ladder]\nfirst = 8\n";
    assert!(Scenario::parse("x", sound).is_ok());
    for (from, to, words) in [
        ("measure = \"capacity\"", "measure = \"speed\"", "unknown variant `speed`"),
        ("measure = \"capacity\"", "measure = \"start\"", "unknown variant `start`"),
        ("groups = [[3, 7]]", "groups = [[8, 7]]", "8"),
        ("groups = [[3, 7]]", "groups = []", "at least one suite and one group"),
        ("groups = [[3, 7]]", "group = [[3, 7]]", "unknown field `group`"),
        ("[\"sg02-*\"]", "[\"sg03\"]", "unknown suite \"sg03\""),
        ("[\"sg02-*\"]", "[\"sg03*\"]", "no suite's name begins with \"sg03\""),
        (
            "[ladder]",
            "delivery = [\"some\"]\n[ladder]",
            "a delivery is all, quorum, dishonest-majority, passive or passive-dishonest-majority",
        ),
        ("[\"sg02-*\"]", "[\"frost-ed448\"]\ndelivery = [\"quorum\"]", "none of the suites has delivery quorum"),
        ("[ladder]", "profiles = [\"moon\"]\n[ladder]", "no profile \"moon\""),
        ("[ladder]", "profiles = []\n[ladder]", "must not be empty"),
        ("[ladder]", "payloads = [\"x\"]\n[ladder]", "not a size"),
        ("[ladder]", "payloads = [\"65MiB\"]\n[ladder]", "64 MiB"),
        ("[ladder]", "time = \"2h\"\n[ladder]", "longer than"),
        ("[ladder]", "time = \"now\"\n[ladder]", "not a duration"),
        ("first = 8", "first = 0", "ladder.first: not a rate: 0"),
        ("first = 8", "first = 8\nmost = 4", "ladder.most is below ladder.first"),
        ("first = 8", "second = 8", "unknown field `second`"),
        ("[ladder]\nfirst = 8", "", "takes [ladder]"),
        (
            "[ladder]\nfirst = 8",
            "[ladder]\nfirst = 8\n[steady]",
            "[steady]: a scenario that measures \"capacity\" has no use",
        ),
        (
            "measure = \"capacity\"",
            "measure = \"payload\"",
            "[ladder]: a scenario that measures \"payload\" has no use",
        ),
        ("[ladder]\nfirst = 8", "profiles = [\"lan\"]\n[ladder]\nfirst = 8", ""),
    ] {
        assert!(sound.contains(from), "{from}");
        let parsed =
            Scenario::parse("x", &sound.replacen(from, to, 1)).map(drop).map_err(|failure| failure.to_string());
        match words {
            "" => assert_eq!(parsed, Ok(())),
            words => assert!(parsed.as_ref().is_err_and(|refusal| refusal.contains(words)), "{to}: {parsed:?}"),
        }
    }
}

#[test]
fn other_measures_have_their_own_mistakes() {
    for (text, words) in [
        (
            "measure = \"steady\"\ngroups = [[3, 7]]\nsuites = [\"sg02-*\"]",
            "takes [ladder] with its first rate, or steady.rate",
        ),
        (
            "measure = \"steady\"\ngroups = [[3, 7]]\nsuites = [\"sg02-*\"]\n[steady]\nrate = 5\n[ladder]\nfirst = 1",
            "no knee to look for",
        ),
        (
            "measure = \"steady\"\ngroups = [[3, 7]]\nsuites = [\"sg02-*\"]\n[steady]\nrate = -5",
            "steady.rate: not a rate",
        ),
        ("measure = \"steady\"\ngroups = [[3, 7]]\nsuites = [\"sg02-*\"]\n[steady]\nrate = 5\ntraced = 0", "nonzero"),
        ("measure = \"network\"", "takes [network]"),
        ("measure = \"network\"\n[network]", "nothing to measure"),
        ("measure = \"network\"\n[network]\npings = [\"0B\"]", "at least 1 byte"),
        ("measure = \"network\"\n[network]\nceremonies = true", "at least one suite"),
        (
            "measure = \"network\"\ngroups = [[3, 7]]\nsuites = [\"sh00-*\"]\n[network]\nceremonies = true",
            "take a dealer",
        ),
        ("measure = \"payload\"\ngroups = [[3, 7]]\nsuites = [\"sg02-*\"]\n[payload]\nrequests = 0", "nonzero"),
    ] {
        let refusal = Scenario::parse("x", &format!("description = \"x\"\n{text}")).map(drop).unwrap_err().to_string();
        assert!(refusal.contains(words), "{text}: {refusal}");
    }
}
