//! Requests by method, caller and outcome.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

/// From 100 us to 26 s, each bucket twice the one before.
const FIRST_BUCKET_SECONDS: f64 = 100e-6;
const BUCKETS: u16 = 19;

/// The counters of the API.
#[derive(Clone, Debug)]
pub(crate) struct ApiMetrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<MethodLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    method: &'static str,
}

impl ApiMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || {
            Histogram::new(prometheus_client::metrics::histogram::exponential_buckets(
                FIRST_BUCKET_SECONDS,
                2.0,
                BUCKETS,
            ))
        };
        let metrics = Self { requests: Family::default(), durations: Family::new_with_constructor(histogram) };
        let registry = registry.sub_registry_with_prefix("theta_api");
        registry.register("requests", "API requests answered, by gRPC status", metrics.requests.clone());
        registry.register_with_unit(
            "request_duration",
            "Time from a request's first byte to its answer",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        metrics
    }

    /// Counts one answer. `method` is from a fixed list, never a caller's text, so that there are few labels.
    pub(crate) fn answered(&self, method: &'static str, code: tonic::Code, took: Duration) {
        self.requests.get_or_create(&RequestLabels { method, code: code_name(code) }).inc();
        self.durations.get_or_create(&MethodLabels { method }).observe(took.as_secs_f64());
    }
}

/// The names of the gRPC specification.
fn code_name(code: tonic::Code) -> &'static str {
    match code {
        tonic::Code::Ok => "OK",
        tonic::Code::Cancelled => "CANCELLED",
        tonic::Code::Unknown => "UNKNOWN",
        tonic::Code::InvalidArgument => "INVALID_ARGUMENT",
        tonic::Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        tonic::Code::NotFound => "NOT_FOUND",
        tonic::Code::AlreadyExists => "ALREADY_EXISTS",
        tonic::Code::PermissionDenied => "PERMISSION_DENIED",
        tonic::Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        tonic::Code::FailedPrecondition => "FAILED_PRECONDITION",
        tonic::Code::Aborted => "ABORTED",
        tonic::Code::OutOfRange => "OUT_OF_RANGE",
        tonic::Code::Unimplemented => "UNIMPLEMENTED",
        tonic::Code::Internal => "INTERNAL",
        tonic::Code::Unavailable => "UNAVAILABLE",
        tonic::Code::DataLoss => "DATA_LOSS",
        tonic::Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
