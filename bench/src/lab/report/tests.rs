//! The report of a fixed folder of results.

use std::path::Path;

use super::*;

fn fixed() -> (Folder, Scenario) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/evaluation");
    (Folder::open(&path).unwrap(), Folder::scenario(&path).unwrap())
}

#[test]
fn a_report_needs_nothing_from_outside() {
    let (folder, scenario) = fixed();
    let page = page(&folder, &scenario);
    for outside in ["http:", "https:", "//", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"), "and could get nothing");
    assert!(!page.contains("xmlns"), "drawings in a page need no name of a namespace");
}

#[test]
fn every_measure_has_its_section_tables_and_plots() {
    let (folder, scenario) = fixed();
    let page = page(&folder, &scenario);
    let sections: Vec<&str> =
        page.split("<section>").skip(1).filter_map(|rest| rest.split("</section>").next()).collect();
    let plots: Vec<usize> = sections.iter().map(|section| section.matches("<figure><svg").count()).collect();
    let tables: Vec<usize> = sections.iter().map(|section| section.matches("<table>").count()).collect();
    // Latency by throughput twice and capacities; stages twice, fairness, nodes; latency, CPU, bytes; round trips.
    assert_eq!((plots.as_slice(), tables.as_slice()), (&[3, 4, 3, 1][..], &[2, 1, 1, 2][..]));
    for (section, title) in sections.iter().zip(["Capacity", "Steady state", "Payloads", "Network"]) {
        assert!(section.contains(&format!("<h2>{title}</h2>")));
        let cells = |row: &str| row.matches("<td").count();
        for table in section.split("<table>").skip(1) {
            let columns = table.split("</tr>").next().unwrap().matches("<th").count() - 1;
            let body = table.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
            assert!(body.lines().filter(|line| !line.is_empty()).all(|row| cells(row) == columns), "{title}: {body}");
        }
    }
    for placeholder in ["%TITLE%", "%SUMMARY%", "%FACTS%", "%SCENARIO%", "%SECTIONS%", "%POINTS%"] {
        assert!(!page.contains(placeholder), "{placeholder}");
    }
}

#[test]
fn capacities_follow_from_the_rows() {
    let (folder, scenario) = fixed();
    let capacities: Vec<Capacity<'_>> =
        ladders(&folder.rows).iter().filter_map(|ladder| Capacity::of(ladder, &scenario.ladder)).collect();
    let [sg02, frost] = capacities.as_slice() else { panic!("{capacities:?}") };
    // Throughput over latency: 50, 66.7, 40, 0.5. The last is not usable.
    assert_eq!((sg02.knee.unwrap().rate, sg02.usable.unwrap().rate, sg02.best.throughput), (200.0, 400.0, Some(480.0)));
    // 500 us a node and request: 2,000 a second; all seven and the client 4,000 us: two cores bear 500.
    assert_eq!((sg02.of_core, sg02.of_machine), (Some(2_000.0), Some(500.0)));
    assert_eq!(
        (frost.knee.unwrap().rate, frost.usable.unwrap().rate, frost.best.throughput),
        (400.0, 400.0, Some(400.0))
    );
    let page = page(&folder, &scenario);
    assert!(page.contains("so that 2 cores bear 500/s; 480/s were measured (96.0 %)"), "the difference is explained");
    assert!(page.contains("<td class=\"n\">31.2</td>"), "2,000 are 31.2 times the published 64");
}

#[test]
fn what_was_read_is_shown_as_text() {
    let (folder, scenario) = fixed();
    let page = page(&folder, &scenario);
    assert!(page.contains("&lt;too many&gt;") && !page.contains("<too many>"));
    assert!(page.contains("for the test of the report: &lt;b&gt;&amp;"));
    assert!(page.contains("A &quot;fast&quot; processor, 2 GHz, 2 cores"));
    let mut out = Vec::new();
    write_tables(&folder, &scenario, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for words in ["published knee", "four-regions to sydney", "a key of sg02-ed25519", "residual delay"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn nodes_and_stages_are_those_of_whole_points() {
    let (folder, _) = fixed();
    assert_eq!((folder.nodes.len(), folder.stages.len()), (7, 10), "the stage of point 99 is none");
}
