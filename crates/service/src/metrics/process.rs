//! The resources that the process uses, as the kernel reports them.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};
use theta_names::WallTime;

/// Clock ticks a second in `/proc`: the kernel's interface to user space fixes them at 100.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the clock and `/proc/self` at each scrape. On systems without `/proc` there is the clock alone.
#[derive(Debug)]
pub(crate) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = [
            ("process_resident_memory", "Memory that is in RAM", "VmRSS:"),
            ("process_peak_resident_memory", "The most memory that has been in RAM", "VmHWM:"),
        ];
        for (name, help, field) in memory {
            if let Some(kibibytes) = kibibytes(&status, field) {
                let gauge = ConstGauge::new(kibibytes.saturating_mul(1024));
                gauge.encode(encoder.encode_descriptor(name, help, Some(&Unit::Bytes), gauge.metric_type())?)?;
            }
        }
        let gauge = ConstGauge::new(WallTime::now().duration().as_secs_f64());
        let help = "This machine's clock, in seconds since 1970";
        gauge.encode(encoder.encode_descriptor("theta_clock", help, Some(&Unit::Seconds), gauge.metric_type())?)?;
        if let Some(seconds) = cpu_seconds(&fs::read_to_string("/proc/self/stat").unwrap_or_default()) {
            let counter = ConstCounter::new(seconds);
            let help = "Processor time, user and system";
            let metric = encoder.encode_descriptor("process_cpu", help, Some(&Unit::Seconds), counter.metric_type())?;
            counter.encode(metric)?;
        }
        Ok(())
    }
}

fn kibibytes(status: &str, field: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Fields 14 and 15 of `proc_pid_stat(5)`. The second field, the program's name, may contain spaces and brackets, so fields
/// are counted from its end.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some((f64::from(user) + f64::from(system)) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_formats() {
        assert_eq!(kibibytes("Name:\tx\nVmRSS:\t    5120 kB\n", "VmRSS:"), Some(5120));
        assert_eq!(kibibytes("", "VmRSS:"), None);
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 1 2 3";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds(""), None);
        assert_eq!(cpu_seconds("1 (x) S"), None);
    }
}
