//! The expressions of rules and dashboard, and the metrics that they name.

use std::collections::BTreeSet;

use serde_json::Value;

/// The expressions of a dashboard's panels, with the panels' titles. Grafana's variables get the values that Grafana would give
/// them for all groups.
pub(crate) fn of_dashboard(text: &str) -> Result<Vec<(String, String)>, String> {
    let dashboard: Value = serde_json::from_str(text).map_err(|error| format!("dashboard.json: {error}"))?;
    let panels = dashboard.get("panels").and_then(Value::as_array).ok_or("dashboard.json has no panels")?;
    let mut found = Vec::new();
    for panel in panels {
        let title = panel.get("title").and_then(Value::as_str).unwrap_or_default();
        for target in panel.get("targets").and_then(Value::as_array).into_iter().flatten() {
            let expression = target.get("expr").and_then(Value::as_str);
            let expression =
                expression.ok_or_else(|| format!("dashboard.json: {title:?} has a target without expr"))?;
            found.push((title.to_owned(), expression.replace("$group", ".*").replace("$__rate_interval", "1m")));
        }
    }
    if found.is_empty() { Err("dashboard.json shows nothing".to_owned()) } else { Ok(found) }
}

/// The metrics of nodes that a text names: words that begin with `theta_` or `process_`.
pub(crate) fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    words.filter(|word| word.starts_with("theta_") || word.starts_with("process_")).map(str::to_owned).collect()
}

/// The names under which a scrape's metrics can be asked for, from its lines `# TYPE name kind`.
pub(crate) fn exposed(scrape: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in scrape.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let Some((name, kind)) = line.split_once(' ') else { continue };
        let endings: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        names.extend(endings.iter().map(|ending| format!("{name}{ending}")));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_variables_replaced() {
        let text = r#"{"panels": [{"title": "row"}, {"title": "a", "targets": [{"expr": "rate(theta_x_total{g=~\"$group\"}[$__rate_interval])"}]}]}"#;
        let expected = ("a".to_owned(), "rate(theta_x_total{g=~\".*\"}[1m])".to_owned());
        assert_eq!(of_dashboard(text), Ok(vec![expected]));
        assert!(of_dashboard(r#"{"panels": [{"targets": [{}]}]}"#).is_err());
        assert!(of_dashboard(r#"{"panels": []}"#).is_err());
        let named = metrics("sum by (theta) (theta_x_total{a=\"b\"}) / process_cpu_seconds_total");
        assert_eq!(named.into_iter().collect::<Vec<_>>(), ["process_cpu_seconds_total", "theta_x_total"]);
    }

    #[test]
    fn a_scrape_exposes_counters_and_histograms_under_other_names() {
        let names = exposed("# HELP a A.\n# TYPE a counter\na_total 1\n# TYPE b histogram\n# TYPE c gauge\n# EOF\n");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a_total", "b_bucket", "b_count", "b_sum", "c"]);
    }
}
