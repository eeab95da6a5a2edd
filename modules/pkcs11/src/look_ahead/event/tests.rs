use super::{
    super::{
        recent::{FEW, LONG_AGO},
        shelf::MOST_ENTRIES,
    },
    *,
};

/// The digest at a place of a zone, in an event.
fn digest(event: u8, place: usize) -> Digest {
    let mut digest = [event; 32];
    digest[..8].copy_from_slice(&u64::try_from(place).unwrap().to_be_bytes());
    digest
}

/// What whoever has a zone of so many sets answers.
fn answer(size: usize, question: &Question) -> Vec<Digest> {
    let event = question.digest[31];
    let own = usize::try_from(u64::from_be_bytes(question.digest[..8].try_into().unwrap())).unwrap();
    let from = if question.before == 0 { own + 1 } else { own.saturating_sub(question.before.into()) };
    (from..size).filter(|place| *place != own).map(|place| digest(event, place)).take(question.most.into()).collect()
}

fn signature(digest: &Digest) -> Bytes {
    Bytes::copy_from_slice(&digest[..8])
}

fn sign(event: &mut Event, digests: Vec<Digest>, now: Instant) {
    assert!((1..=64).contains(&digests.len()) && event.shelf.under_way() <= event.pace.size());
    event.made(digests.into_iter().map(|digest| (digest, Some(signature(&digest)))).collect(), now);
}

/// Does all that there is to do: how many signatures were made, and how many questions asked.
fn work(event: &mut Event, size: usize, now: Instant) -> (usize, usize) {
    let (mut made, mut asked) = (0, 0);
    event.workers += 1;
    loop {
        match event.next(now) {
            Step::Ask(question) => {
                asked += 1;
                event.listed(&question, &answer(size, &question));
            }
            Step::Sign(digests) => {
                made += digests.len();
                sign(event, digests, now);
            }
            Step::Rest => return (made, asked),
        }
    }
}

fn nothing(event: &mut Event, of: u8, places: impl IntoIterator<Item = usize>, now: Instant) {
    for place in places {
        let taken = event.take(&digest(of, place), now);
        assert!(matches!(taken, Taken::Known | Taken::Unknown), "{place}: {taken:?}");
    }
}

/// An event in which the first eight were signed as they were asked for.
fn begun(size: usize, now: Instant) -> Event {
    let mut event = Event::default();
    nothing(&mut event, 1, 0..FEW, now);
    assert_eq!(work(&mut event, size, now), (FIRST.min(size - FEW), 1));
    event
}

#[test]
fn a_change_of_a_few_names_is_nothing_to_look_ahead_for() {
    let (mut event, now) = (Event::default(), Instant::now());
    nothing(&mut event, 1, 100..100 + FEW - 1, now);
    assert!(!event.is_due(now));
    nothing(&mut event, 1, [107], now);
    assert!(event.is_due(now));
    // Eight changes of single names at different times: none of them is near another one of its event.
    let mut event = Event::default();
    for change in 0..40 {
        nothing(&mut event, change, [7], now);
    }
    assert_eq!(work(&mut event, 100_000, now), (0, 1));
    nothing(&mut event, 50, (0..FEW).map(|change| change * 5_000), now);
    assert_eq!(work(&mut event, 100_000, now), (0, 1), "far from each other");
    // What was asked for long ago is no part of it.
    let mut event = Event::default();
    nothing(&mut event, 1, 0..FEW - 1, now);
    nothing(&mut event, 1, [FEW], now + LONG_AGO);
    assert_eq!(work(&mut event, 1_000, now + LONG_AGO), (0, 1));
}

#[test]
fn what_belongs_together_is_made_before_it_is_asked_for() {
    let now = Instant::now();
    let mut event = begun(1_000, now);
    for place in FEW..1_000 {
        let digest = digest(1, place);
        assert_eq!(event.take(&digest, now), Taken::Made(signature(&digest)), "{place}");
        work(&mut event, 1_000, now);
    }
    let counts = Counts { ahead: 1_000 - FEW, asked: FEW, left: 0 };
    assert_eq!((event.report(false), event.report(true)), (Some(counts), None));
    // What was given is not there a second time.
    nothing(&mut event, 1, [500], now);
}

/// Sixteen threads of a host, each with every sixteenth name, in an order that nobody knows.
#[test]
fn threads_of_a_host_may_begin_anywhere() {
    let now = Instant::now();
    let mut event = Event::default();
    let mut next: Vec<usize> = (0..16).rev().map(|thread| thread * 2).collect();
    let (mut made, mut asked) = (0, 0);
    for turn in 0..1_000 {
        let thread = &mut next[turn * turn % 7 + turn % 10];
        match event.take(&digest(1, *thread), now) {
            Taken::Made(_) => made += 1,
            _ => asked += 1,
        }
        *thread += if thread.is_multiple_of(2) { 1 } else { 31 };
        work(&mut event, 4_000, now);
    }
    assert!(made > 900, "{made} made ahead, {asked} when they were asked for");
}

/// However large a zone is, there is an end to what is made and not asked for.
#[test]
fn no_more_is_made_ahead_than_the_host_uses() {
    let (now, size) = (Instant::now(), 30_000);
    let mut event = begun(size, now);
    let (mut most, mut all, mut questions) = (0, FIRST, 1);
    for place in FEW..size {
        assert!(matches!(event.take(&digest(1, place), now), Taken::Made(_)), "{place}");
        let (made, asked) = work(&mut event, size, now);
        (all, questions) = (all + made, questions + asked);
        assert!(event.shelf.waiting() <= FIRST + 2 * (place - FEW + 1), "{place}: {}", event.shelf.waiting());
        most = most.max(event.shelf.waiting());
    }
    assert_eq!((most, all, event.shelf.waiting()), (MOST_AHEAD, size - FEW, 0));
    assert!(questions <= size / 1_024 + 3, "{questions}");
}

#[test]
fn what_is_remembered_has_a_bound() {
    let (now, size) = (Instant::now(), 200_000);
    let mut event = begun(size, now);
    for place in FEW..size {
        event.take(&digest(1, place), now);
        work(&mut event, size, now);
        assert!(event.shelf.len() <= MOST_ENTRIES + usize::from(PAGE) + MOST_AHEAD);
        assert!(event.queue.len() <= LOW + usize::from(PAGE));
    }
    assert_eq!(event.report(false).unwrap().ahead, size - FEW);
}

/// What the host asks for before its turn is signed at once, and not again.
#[test]
fn what_is_asked_for_before_its_turn_is_made_once() {
    let now = Instant::now();
    let mut event = begun(1_000, now);
    nothing(&mut event, 1, 200..300, now);
    let mut made = 0;
    for place in (FEW..200).chain(300..1_000) {
        assert!(matches!(event.take(&digest(1, place), now), Taken::Made(_)), "{place}");
        made += work(&mut event, 1_000, now).0;
    }
    assert_eq!(made, 1_000 - FEW - FIRST - 100);
}

#[test]
fn another_event_is_another_beginning() {
    let now = Instant::now();
    let mut event = begun(1_000, now);
    event.workers += 1;
    (FEW..FEW + FIRST).for_each(|place| drop(event.take(&digest(1, place), now)));
    let Step::Sign(under_way) = event.next(now) else { panic!("there is more to sign") };
    assert_eq!(event.take(&under_way[0], now), Taken::UnderWay);
    nothing(&mut event, 2, 0..FEW, now);
    assert_eq!(work(&mut event, 1_000, now), (FIRST, 1));
    sign(&mut event, under_way.clone(), now);
    assert_eq!(event.shelf.waiting(), FIRST, "what comes too late is not kept");
    assert_eq!(event.take(&under_way[0], now), Taken::Unknown);
    assert!(matches!(event.take(&digest(2, FEW), now), Taken::Made(_)));
}

#[test]
fn after_a_failure_nothing_is_tried_for_a_while() {
    let (mut event, now) = (Event::default(), Instant::now());
    nothing(&mut event, 1, 0..FEW, now);
    event.workers += 1;
    assert!(matches!(event.next(now), Step::Ask(_)));
    nothing(&mut event, 1, FEW..3 * FEW, now);
    event.pause(now);
    assert_eq!(event.next(now), Step::Rest);
    let mut at = now;
    for wait in [10, 20, 40, 80, 160, 320, 600, 600] {
        let later = at + Duration::from_secs(wait);
        nothing(&mut event, 1, 0..FEW, later - Duration::from_millis(1));
        assert!(!event.is_due(later - Duration::from_millis(1)));
        assert!(event.is_due(later));
        event.workers += 1;
        assert!(matches!(event.next(later), Step::Ask(_)));
        (at, event.workers) = (later, 0);
        event.pause(at);
    }
    // What has worked once may fail for a short time again.
    let later = at + LONGEST_PAUSE;
    nothing(&mut event, 3, 0..FEW, later);
    assert_eq!(work(&mut event, 1_000, later), (FIRST, 1));
    event.pause(later);
    assert!(matches!(event.take(&digest(3, FEW), later), Taken::Made(_)), "what was made is good");
    nothing(&mut event, 3, FEW + FIRST..2 * FEW + FIRST, later);
    assert!(event.is_due(later + PAUSE) && !event.is_due(later));
}

/// A signature that is not made is made when it is asked for.
#[test]
fn what_fails_is_asked_for_again() {
    let (mut event, now) = (Event::default(), Instant::now());
    nothing(&mut event, 1, 0..FEW, now);
    event.workers += 1;
    let Step::Ask(question) = event.next(now) else { panic!("nothing is asked") };
    event.listed(&question, &answer(1_000, &question));
    let Step::Sign(digests) = event.next(now) else { panic!("nothing is signed") };
    assert_eq!(event.take(&digests[3], now), Taken::UnderWay);
    event.made(digests.iter().map(|digest| (*digest, None)).collect(), now);
    event.pause(now);
    assert_eq!((event.take(&digests[3], now), event.shelf.under_way()), (Taken::Unknown, 0));
}

/// Whoever answers need not be who it should be.
#[test]
fn a_service_that_repeats_itself_is_asked_no_more() {
    let (mut event, now) = (Event::default(), Instant::now());
    nothing(&mut event, 1, 0..FEW, now);
    event.workers += 1;
    let (mut asked, mut signed) = (0, 0);
    loop {
        match event.next(now) {
            // All that was asked for, and the same thousand again and again.
            Step::Ask(question) => {
                asked += 1;
                let all: Vec<Digest> = (0..FEW).chain(0..1_016).map(|place| digest(1, place)).collect();
                event.listed(&question, &all);
            }
            Step::Sign(digests) => {
                signed += digests.len();
                sign(&mut event, digests, now);
                (0..2_000).for_each(|place| drop(event.take(&digest(1, place), now)));
            }
            Step::Rest => break,
        }
        assert!(asked < 10, "there is no end to it");
    }
    assert!(signed <= 1_016 && event.queue.len() <= LOW + usize::from(PAGE), "{signed}");
}

#[test]
fn what_nobody_asks_for_is_forgotten() {
    let now = Instant::now();
    let mut event = begun(1_000, now);
    assert!(!event.is_idle(now + IDLE - Duration::from_secs(1)));
    assert!(event.is_idle(now + IDLE));
    assert_eq!(event.take(&digest(1, FEW), now + IDLE), Taken::Unknown);
    assert_eq!((event.shelf.waiting(), event.shelf.len()), (0, 0));
}
