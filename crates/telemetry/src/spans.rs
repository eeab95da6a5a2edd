//! What is said of a request.

use theta_names::WallTime;

use crate::assembly::Part;
use crate::otlp::{
    ExportTraceServiceRequest, INTERNAL, InstrumentationScope, KeyValue, Resource, ResourceSpans, SERVER, ScopeSpans,
    Span,
};

/// The spans of a node's parts.
pub(crate) fn request(node: u16, parts: &[Part]) -> ExportTraceServiceRequest {
    let attributes = vec![
        KeyValue::text("service.name", "theta"),
        KeyValue::text("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::text("service.instance.id", format!("node-{node}")),
        KeyValue::number("theta.node", node),
    ];
    let scope =
        InstrumentationScope { name: "theta-telemetry".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let spans = parts.iter().flat_map(spans).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
    let resource = Some(Resource { attributes });
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { resource, scope_spans }] }
}

/// One for the node's part, and one for each of its stages under it.
fn spans(part: &Part) -> Vec<Span> {
    let Some((begin, end)) = part.times() else { return Vec::new() };
    let [trace_id @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = &part.instance;
    let span = |name: &str, kind, (begin, end): (WallTime, WallTime)| Span {
        trace_id: trace_id.to_vec(),
        span_id: id(),
        parent_span_id: Vec::new(),
        name: name.to_owned(),
        kind,
        start_time_unix_nano: nanos(begin),
        end_time_unix_nano: nanos(end),
        attributes: Vec::new(),
    };
    let mut whole = span("request", SERVER, (begin, end));
    whole.attributes = vec![
        KeyValue::text("theta.instance", hex::encode(part.instance)),
        KeyValue::text("theta.scheme", part.scheme.as_str()),
    ];
    let parent = whole.span_id.clone();
    let stages = part.stages.iter().map(|(name, begin, end)| {
        let stage = span(name, INTERNAL, (*begin, *end));
        Span { parent_span_id: parent.clone(), ..stage }
    });
    let stages: Vec<Span> = stages.collect();
    core::iter::once(whole).chain(stages).collect()
}

/// A new id of a span. Two that are the same by chance are shown wrong, and nothing else.
fn id() -> Vec<u8> {
    let mut id = [0; 8];
    if getrandom::fill(&mut id).is_err() {
        id = [1; 8];
    }
    id.to_vec()
}

fn nanos(time: WallTime) -> u64 {
    u64::try_from(time.duration().as_nanos()).unwrap_or(u64::MAX)
}
