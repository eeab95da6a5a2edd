//! The worked example of the specification is true.

use theta_names::{Label, Operation};
use theta_policy::Policy;
use theta_statements::{Ask, UnixTime};

const SPEC: &str = include_str!("../../../../spec/policy.md");

fn example() -> Policy {
    let text = SPEC.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    Policy::parse(text, "spec/policy.md").unwrap()
}

#[test]
fn the_table_of_examples_holds() {
    let policy = example();
    let mut rows = 0;
    let table = SPEC.split("| who |").nth(1).unwrap();
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [client, operation, key, label, slot, time, answer, rule, _] = cells[..] else { panic!("{row}") };
        let ask = Ask {
            key: Some(key).filter(|key| !key.is_empty()),
            label: Label::new(label.as_bytes()).unwrap(),
            slot: slot.parse().ok(),
            ..Ask::new("demo", operation.parse::<Operation>().unwrap())
        };
        let time: UnixTime = format!("{time}T00:00:00Z").parse().unwrap();
        let explained = policy.explain(client, &ask, time);
        let said = format!("{:?}", explained.answer).to_lowercase();
        let by = explained.rule.map_or_else(String::new, |rule| rule.to_string());
        assert_eq!((said.as_str(), by.as_str()), (answer, rule), "{row}");
        rows += 1;
    }
    assert!(rows >= 10, "{rows}");
}
