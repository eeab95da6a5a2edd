//! What the evaluation literature reports of a service of this kind, on other machines: one virtual core a node, nodes of one region.

/// The knee in requests a second, by scheme and number of nodes.
pub(super) fn knee(scheme: &str, n: u16) -> Option<f64> {
    let pairings = matches!(scheme, "BZ03" | "BLS04");
    let [seven, thirty_one, large] = match scheme {
        "SG02" | "CKS05" | "BZ03" | "BLS04" => [if pairings { 32.0 } else { 64.0 }, 16.0, 2.0],
        "FROST" => [64.0, 8.0, 1.0],
        "SH00" => [8.0, 4.0, 1.0],
        _ => return None,
    };
    match n {
        7 => Some(seven),
        31 => Some(thirty_one),
        127 => Some(large),
        _ => None,
    }
}

/// Residual delay factor and latency fairness index in steady state, by scheme, with 31 nodes.
pub(super) fn steady(scheme: &str, n: u16) -> Option<(f64, f64)> {
    if n != 31 {
        return None;
    }
    match scheme {
        "SG02" => Some((2.76, 0.27)),
        "BZ03" => Some((1.07, 0.48)),
        "SH00" => Some((0.99, 0.50)),
        "BLS04" => Some((0.95, 0.51)),
        "FROST" => Some((0.26, 0.79)),
        "CKS05" => Some((3.29, 0.23)),
        _ => None,
    }
}
