//! Rates: exact, bounded, and each client's own.

use proptest::prelude::*;
use theta_policy::{MemorySlots, PolicyHandle, Rate, RateAnswer, RateLimiter, Reason};
use theta_statements::{Name, UnixTime};

use crate::support::{NOW, alice, allow, fingerprint, people, policy, sign, state};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

#[test]
fn a_burst_then_one_at_a_time() {
    let policy = policy(&allow("r", "*", "*", "*", "rate = \"6/min\"\nburst = 2"));
    let state = state();
    let at = |millis| policy.decide(&alice(&policy).asks(sign(b"m")), NOW.plus(millis), &state).reason;
    assert_eq!((at(0), at(0)), (Reason::Allowed, Reason::Allowed));
    let rate = rate("6/min").with_burst(2).unwrap();
    assert_eq!(at(0), Reason::TooOften { rate, wait: 10_000 });
    assert_eq!(at(9_999), Reason::TooOften { rate, wait: 1 });
    assert_eq!((at(10_000), at(10_000).code()), (Reason::Allowed, "too-often"));
    let pause = 3_600_000;
    assert_eq!((at(pause), at(pause)), (Reason::Allowed, Reason::Allowed));
    assert_eq!(at(pause), Reason::TooOften { rate, wait: 10_000 }, "a long pause saves up no more than the burst");
    let bob = policy.caller_by_certificate(fingerprint(2)).unwrap();
    assert!(policy.decide(&bob.asks(sign(b"m")), NOW, &state).allowed, "each client has a rate of its own");
}

#[test]
fn refusals_for_other_reasons_count() {
    let more = "rate = \"1/day\"\napprovals = { of = [\"x\"], need = 1 }";
    let (policy, state) = (policy(&allow("r", "*", "*", "*", more)), state());
    let ask = || policy.decide(&alice(&policy).asks(sign(b"m")), NOW, &state).reason.code();
    assert_eq!((ask(), ask()), ("too-few-approvals", "too-often"));
}

#[test]
fn nonsense_is_no_rate() {
    assert_eq!(rate("100/min").to_string(), "100/min, burst 100");
    for bad in ["", "100", "/min", "0/s", "1000001/s", "+1/s", "1.5/s", "1/m", "1 /s", "-1/s", "1/S"] {
        assert!(bad.parse::<Rate>().is_err(), "{bad:?}");
    }
    assert!(rate("1/s").with_burst(0).is_none() && rate("1/s").with_burst(1_000_001).is_none());
}

#[test]
fn memory_is_bounded_and_full_buckets_go_first() {
    let mut limiter = RateLimiter::new(2);
    let (rule, slow) = (name("r"), rate("1/day"));
    assert_eq!(limiter.take(&rule, &name("a"), rate("1/s"), NOW), RateAnswer::Taken);
    assert_eq!(limiter.take(&rule, &name("b"), slow, NOW), RateAnswer::Taken);
    assert_eq!(limiter.take(&rule, &name("c"), slow, NOW), RateAnswer::NoRoom);
    assert_eq!(limiter.take(&rule, &name("c"), slow, NOW.plus(1_000)), RateAnswer::Taken, "a's is full again");
    assert!(matches!(limiter.take(&rule, &name("b"), slow, NOW.plus(1_000)), RateAnswer::Wait(_)));
    assert_eq!(limiter.len(), 2);
}

#[test]
fn clocks_that_go_back_give_nothing_and_recover() {
    let mut limiter = RateLimiter::default();
    let (rule, client, once) = (name("r"), name("a"), rate("1/min"));
    assert_eq!(limiter.take(&rule, &client, once, NOW), RateAnswer::Taken);
    for jitter in 0..100 {
        let now = UnixTime(NOW.0 - jitter % 2 * 1_000);
        assert!(matches!(limiter.take(&rule, &client, once, now), RateAnswer::Wait(_)));
    }
    let year_back = UnixTime(NOW.0 - 365 * 86_400_000);
    assert_eq!(limiter.take(&rule, &client, once, year_back), RateAnswer::Wait(60_000));
    assert_eq!(limiter.take(&rule, &client, once, year_back.plus(60_000)), RateAnswer::Taken);
}

#[test]
fn counts_survive_reloads_under_their_names() {
    let text = |rule: &str, rate: &str| people() + &allow(rule, "*", "*", "*", &format!("rate = \"{rate}\""));
    let policy = theta_policy::Policy::parse(&text("r", "2/day"), "p").unwrap();
    let handle = PolicyHandle::new(policy, MemorySlots::default());
    let ask = || handle.decide(&alice(&handle.current()).asks(sign(b"m")), NOW).allowed;
    assert!(ask() && ask() && !ask());
    handle.reload(&text("r", "2/h"), "p").unwrap();
    assert!(!ask(), "the same name, the same count");
    handle.reload(&text("s", "2/h"), "p").unwrap();
    assert!(ask(), "another name, another count");
    handle.reload(&text("r", "2/h"), "p").unwrap();
    assert!(ask(), "what is gone is forgotten");
}

proptest! {
    /// At whatever times requests come, no more than burst + rate * time pass, and no fewer when they come all the time.
    #[test]
    fn no_drift(count in 1_u64..50, burst in 1_u64..20, gaps in proptest::collection::vec(0_u64..400, 1..400)) {
        let rate = rate(&format!("{count}/s")).with_burst(burst).unwrap();
        let mut limiter = RateLimiter::default();
        let (rule, client) = (name("r"), name("a"));
        let (mut now, mut taken) = (NOW, 0_u64);
        for gap in gaps {
            now = now.plus(gap);
            match limiter.take(&rule, &client, rate, now) {
                RateAnswer::Taken => taken += 1,
                RateAnswer::Wait(wait) => {
                    prop_assert!(wait >= 1);
                    prop_assert!(matches!(limiter.take(&rule, &client, rate, now.plus(wait - 1)), RateAnswer::Wait(1)));
                    now = now.plus(wait);
                    prop_assert_eq!(limiter.take(&rule, &client, rate, now), RateAnswer::Taken);
                    taken += 1;
                }
                RateAnswer::NoRoom => prop_assert!(false),
            }
        }
        prop_assert!(taken * 1_000 <= burst * 1_000 + now.since(NOW) * count);
    }
}
