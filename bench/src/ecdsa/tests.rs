//! Every black box, over sockets and in the model.

use indicatif::ProgressBar;

use super::*;

/// A count that takes more than one program where one program makes few.
const FEW: usize = 3;

fn measure(profile: Option<&Profile>, backend: Backend, threshold: Threshold, count: usize) -> Outcome {
    let point = Point { profile, sockets: false, curve: CurveName::P256, backend, threshold };
    let times = Times { programs: 1, signatures: 1, at_once: 2 };
    measured(&point, count, times, &ProgressBar::hidden()).unwrap()
}

/// The smallest group that a black box serves.
fn smallest(backend: Backend) -> Threshold {
    (2..=5).find_map(|nodes| backend.threshold(nodes)).unwrap()
}

fn are_positive(result: &Outcome) {
    let row = &result.row;
    for figure in [
        row.key_generation_ms,
        row.presigning_ms,
        row.tuples_per_second,
        row.tuples_per_second_with_set_up,
        row.on_demand_ms,
        row.sign_ms,
        row.sign_together_ms.unwrap(),
        row.key_generation_bytes,
        row.bytes_per_tuple,
        row.on_demand_bytes,
        row.sign_bytes,
    ] {
        assert!(figure.is_finite() && figure > 0.0, "{row:?}");
    }
    assert_eq!(
        row.tuples_per_second_at_once.is_some_and(|rate| rate.is_finite() && rate > 0.0),
        !row.modelled,
        "{row:?}"
    );
    assert!(row.tuples_per_second >= row.tuples_per_second_with_set_up, "{row:?}");
    assert!(row.key_generation_rounds > 0 && row.presigning_rounds > 0 && row.sign_rounds == 1, "{row:?}");
    assert!(row.signed_together > 0, "{row:?}");
    assert!(row.on_demand_rounds > row.sign_rounds, "{row:?}");
}

/// Signatures are verified where they are made: a false one is a failure.
#[test]
fn every_black_box_signs_over_sockets_and_sends_the_same_in_the_model() {
    let lan = Profile::find("lan").unwrap();
    for backend in Backend::value_variants() {
        let threshold = smallest(*backend);
        let real = measure(None, *backend, threshold, FEW);
        let modelled = measure(Some(&lan), *backend, threshold, FEW);
        for result in [&real, &modelled] {
            are_positive(result);
            assert_eq!((result.row.tuples, result.row.programs), (FEW, 1));
        }
        assert_eq!(real.traffic, modelled.traffic, "{backend:?}");
        assert!(real.is_of_the_same(&modelled) && modelled.row.modelled && !real.row.modelled);
        report::check_traffic(&[real.clone(), modelled.clone()]).unwrap();
        let lies = Outcome { traffic: Vec::new(), ..modelled };
        let refused = report::check_traffic(&[real, lies]).unwrap_err().to_string();
        assert!(refused.contains("sends something else over lan"), "{refused}");
    }
}

#[test]
fn one_program_makes_more_than_an_instance_keeps() {
    let threshold = smallest(Backend::Mascot);
    let lan = Profile::find("lan").unwrap();
    let row = measure(Some(&lan), Backend::Mascot, threshold, 100).row;
    assert_eq!((row.tuples, row.programs), (100, 1), "2.7 MB");
}

#[test]
fn far_parties_take_a_latency_for_each_round() {
    let far = Profile::find("continents").unwrap();
    let row = measure(Some(&far), Backend::Rep3, smallest(Backend::Rep3), FEW).row;
    // One share more is enough for a signature: in Tokyo, the one from Washington. Other rounds take between the nearest two and the farthest.
    assert!((82.5..110.0).contains(&row.sign_ms), "{row:?}");
    let each = row.presigning_ms / f64::from(row.presigning_rounds);
    assert!((45.5..130.0).contains(&each), "{row:?}");
}

#[test]
fn tables_have_units_and_files_a_line_for_each_result() {
    let lan = Profile::find("lan").unwrap();
    let results: Vec<Outcome> =
        [None, Some(&lan)].into_iter().map(|it| measure(it, Backend::Rep3, smallest(Backend::Rep3), FEW)).collect();
    let machine = Machine::look();
    let report = Report { machine: &machine, results: &results, beside: &[] };
    let mut text = Vec::new();
    report.write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for words in ["tuples/s", "sign ms", "loopback", "are a model", "Rep3: 3 tuples by one program", "64 B, 64 B, 64 B"]
    {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let folder = tempfile::tempdir().unwrap();
    report::write_files(&folder.path().join("new"), &report).unwrap();
    let lines = |name: &str| std::fs::read_to_string(folder.path().join("new").join(name)).unwrap().lines().count();
    assert_eq!((lines("results.csv"), lines("traffic.csv")), (3, 1 + 2 * 5 * 3));
}
