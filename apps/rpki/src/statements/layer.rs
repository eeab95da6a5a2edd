//! Which of several statements decides about each thing: of a member's own, or of those that operators have signed in its place, with what is remembered of either.

use std::collections::{BTreeMap, BTreeSet};

use super::{Identified, MOST_SUBJECTS, begins_by};
use crate::memory::{Counted, Digest, Entry, Memory};

/// Before a member's handle, in whose place operators state: no handle begins with it.
pub(super) const OPERATORS: char = '*';

/// Statements that are ordered among each other: a member's own, or what operators state in its place.
pub(super) struct Layer<'a> {
    /// By which they are remembered.
    pub(super) name: &'a str,
    pub(super) counting: &'a [Identified],
    pub(super) overclaimed: &'a [Identified],
}

/// What they come to.
pub(super) struct Decided {
    /// Those that decide, and have not ended.
    pub(super) in_force: Vec<Identified>,
    /// About what one would decide that is not there.
    pub(super) unknown: BTreeSet<String>,
    /// What is said of the first of them.
    pub(super) missing: Option<String>,
    /// When it may be otherwise.
    pub(super) until: i64,
}

impl Layer<'_> {
    /// About what is `settled` otherwise nothing is missed.
    pub(super) fn decided(&self, settled: &BTreeSet<&str>, memory: &Memory, now: i64) -> (Decided, Vec<Entry>) {
        let (last, later) = (last(self.counting, now), later(self.counting, now));
        let until = boundary(self.counting, now);
        let mut decided = Decided { in_force: Vec::new(), unknown: BTreeSet::new(), missing: None, until };
        let (mut entries, mut subjects) = (Vec::new(), memory.statements_of(self.name).count());
        // What counted by a clock that was ahead does not count yet by one that is right.
        let is_early = |before: &Counted| begins_by(before.number) > now || later.contains_key(&before.rank());
        for (subject, statement) in &last {
            let (before, counted) = (memory.counted(self.name, subject), statement.counted());
            match before {
                Some(before) if before.rank() > counted.rank() => {
                    if !is_early(before) {
                        continue;
                    }
                }
                Some(before) if before == counted => {}
                None if subjects >= MOST_SUBJECTS => {
                    let name = self.name;
                    tracing::error!(
                        "{name} has stated about {MOST_SUBJECTS} different things: nothing about {subject} counts"
                    );
                    continue;
                }
                _ => {
                    subjects = subjects.saturating_add(usize::from(before.is_none()));
                    let (member, subject) = (self.name.to_owned(), (*subject).to_owned());
                    entries.push(Entry::Statement { member, subject, counted: *counted });
                }
            }
            decided.in_force.extend(counted.grants(now).then(|| (*statement).clone()));
        }
        // That its member does not hold it any more is the registry's own word, and takes no statement.
        let overclaimed: BTreeSet<Digest> = self.overclaimed.iter().map(|one| one.counted().digest).collect();
        for (subject, before) in memory.statements_of(self.name).filter(|(subject, _)| !settled.contains(subject)) {
            if is_early(before) {
                // Until its file is there its number alone says when it begins.
                let begins = Some(begins_by(before.number)).filter(|begins| *begins > now);
                decided.until = decided.until.min(begins.unwrap_or(decided.until));
                continue;
            }
            let current = last.get(subject).map(|current| current.counted().rank());
            let counts = current.is_some_and(|current| current >= before.rank());
            if !before.grants(now) || counts || overclaimed.contains(&before.digest) {
                continue;
            }
            decided.unknown.insert(subject.to_owned());
            let reason = || self.missing(subject, before, current, now);
            decided.missing.get_or_insert_with(reason);
            decided.until = decided.until.min(before.until.unwrap_or(decided.until));
        }
        (decided, entries)
    }

    /// What is said where one counted, and has not ended, of which nothing is known now.
    fn missing(&self, subject: &str, before: &Counted, current: Option<(u64, Digest)>, now: i64) -> String {
        if let Some(member) = self.name.strip_prefix(OPERATORS) {
            return missing_override(member, subject, before);
        }
        missing(self.name, subject, before, current, self.counting, now)
    }
}

/// About each subject of a member the statement that decides, of those that have begun.
pub(super) fn last(statements: &[Identified], now: i64) -> BTreeMap<&str, &Identified> {
    let mut last = BTreeMap::<_, &Identified>::new();
    for statement in statements.iter().filter(|statement| statement.statement().begins() <= now) {
        let current = last.entry(statement.subject()).or_insert(statement);
        if statement.counted().rank() > current.counted().rank() {
            *current = statement;
        }
    }
    last
}

/// The statements that have not begun, by what orders them.
fn later(statements: &[Identified], now: i64) -> BTreeMap<(u64, Digest), &Identified> {
    let later = statements.iter().filter(|statement| statement.statement().begins() > now);
    later.map(|statement| (statement.counted().rank(), statement)).collect()
}

/// When the next one begins or ends; the end of time if none does.
pub(super) fn boundary(statements: &[Identified], now: i64) -> i64 {
    let times = statements.iter().flat_map(|one| [Some(one.statement().begins()), one.counted().until]);
    times.flatten().filter(|time| *time > now).min().unwrap_or(i64::MAX)
}

/// What is said where a grant counted of which nothing is known now.
fn missing(
    member: &str,
    subject: &str,
    before: &Counted,
    current: Option<(u64, Digest)>,
    counting: &[Identified],
    now: i64,
) -> String {
    let (short, number): (String, _) = (subject.chars().take(45).collect(), before.number);
    let of_same = counting.iter().filter(|one| one.subject() == subject && one.statement().begins() > now);
    let next = of_same.min_by_key(|one| one.statement().begins()).map(Identified::statement);
    let next = next.map(|next| {
        format!(" (its successor {} begins only at {}, in seconds since 1970)", next.number, next.begins())
    });
    let older = current.map(|(older, _)| format!(" ({older} is an older one, and does not count in its place)"));
    format!(
        "{member}'s statement {number} about {short} counted and counts no more{}{}: its file is missing, is another one, or too few of the member's keys have signed it since one was replaced. It has to come back, or the member states with a higher number what is to be",
        older.unwrap_or_default(),
        next.unwrap_or_default()
    )
}

/// The same of what operators have stated in a member's place.
fn missing_override(member: &str, subject: &str, before: &Counted) -> String {
    let (short, digest): (String, _) = (subject.chars().take(45).collect(), hex::encode(before.digest));
    format!(
        "the operators' statement in {member}'s place about {short} (SHA-256 {digest}) counted and counts no more: its file has to be among this registry's overrides and in overrides/ of the store, signed by enough operators, until it ends, or operators state with a higher number what is to be"
    )
}

#[cfg(test)]
mod tests {
    use crate::{
        attestation::Attestation,
        memory::Memory,
        statements::{ByOperators, Identified, OfMember, Stated, Statement, TakenUp, authorised::tests::stands},
    };

    fn roa(asn: u32) -> Attestation {
        Attestation::roa(asn, ["192.0.2.0/24".parse().unwrap()].into()).unwrap()
    }

    fn own(number: u64, until: Option<i64>, attestation: &Attestation) -> Statement {
        let (rpki, member, attestation) = ("example".to_owned(), "acme".to_owned(), attestation.clone());
        Statement { rpki, member, number, from: 0, until, attestation }
    }

    /// What operators grant or withdraw until then, in acme's place.
    fn theirs(number: u64, grants: bool, until: i64, attestation: &Attestation) -> Identified {
        let statement = own(number, grants.then_some(until), attestation);
        Identified::by_operators(ByOperators { statement, until, reason: "why".to_owned() })
    }

    fn stated(own: &[Statement], theirs: &[Identified]) -> Stated {
        let mut stated: Stated = own.iter().cloned().collect();
        theirs.iter().cloned().for_each(|one| stated.override_by(one));
        stated
    }

    #[test]
    fn operators_decide_while_it_lasts_whatever_the_members_numbers_are() {
        let mut memory = Memory::default();
        // The member, or whoever has its key, withdraws what operators grant, and grants what they withdraw.
        let members = [own(900_000, None, &roa(1)), own(900_001, Some(100), &roa(2))];
        let all = stated(&members, &[theirs(1, true, 50, &roa(1)), theirs(2, false, 60, &roa(2))]);
        assert_eq!(stands(&all, &mut memory, 1), (vec![roa(1)], true));
        let (standing, _) = all.standing(&memory, 1, None);
        assert_eq!(standing.authorised.overriding("acme").len(), 2);
        assert!(standing.holds(49) && !standing.holds(50), "until the first of them ends");
        assert_eq!(stands(&all, &mut memory, 50), (vec![], true), "the grant has ended, and the member's word counts");
        let (standing, _) = all.standing(&memory, 50, None);
        assert!(standing.holds(59) && !standing.holds(60), "a withdrawal ends as well");
        assert_eq!(stands(&all, &mut memory, 60), (vec![roa(2)], true), "so has the withdrawal");
        // And what the member has stated takes no number away from operators.
        assert_eq!(stands(&stated(&members, &[theirs(3, true, 90, &roa(1))]), &mut memory, 61).0.len(), 2);
    }

    #[test]
    fn what_was_overtaken_or_has_ended_does_not_come_back() {
        let (grant, over) = (theirs(1, true, 100, &roa(1)), theirs(2, false, 20, &roa(1)));
        let mut memory = Memory::default();
        assert_eq!(stands(&stated(&[], std::slice::from_ref(&grant)), &mut memory, 1), (vec![roa(1)], true));
        let both = stated(&[], &[grant.clone(), over]);
        assert_eq!(stands(&both, &mut memory, 2), (vec![], true));
        assert_eq!(stands(&both, &mut memory, 20), (vec![], true), "the later one has ended, and still it is the last");
        assert_eq!(stands(&both, &mut Memory::default(), 20), (vec![], true), "as a new agent knows it");
        // Whoever keeps the store shows the first one alone again.
        let replayed = stated(&[], std::slice::from_ref(&grant));
        assert_eq!(stands(&replayed, &mut memory, 21), (vec![], true));
        assert_eq!(stands(&replayed, &mut Memory::default(), 100), (vec![], true), "it has ended");
    }

    #[test]
    fn what_not_all_see_counts_for_nothing_and_what_is_hidden_again_is_not_guessed() {
        let mut memory = Memory::default();
        let (member, grant) = (own(1, Some(200), &roa(2)), theirs(1, true, 100, &roa(1)));
        let mut all = stated(&[member], &[grant]);
        let shown = std::mem::take(&mut all.shown);
        assert_eq!(stands(&all, &mut memory, 1), (vec![roa(2)], true));
        assert_eq!(memory.statements_of("*acme").count(), 0, "nor is it remembered");
        all.shown = shown;
        assert_eq!(stands(&all, &mut memory, 2).0.len(), 2);
        all.shown.clear();
        assert!(!stands(&all, &mut memory, 3).1, "nobody takes it away by deleting a file");
        let (standing, _) = all.standing(&memory, 3, None);
        let said = standing.authorised.unsettled("acme").unwrap();
        assert!(said.contains("in acme's place") && said.contains("counted and counts no more"), "{said}");
        assert!(standing.holds(99) && !standing.holds(100));
        assert_eq!(stands(&all, &mut memory, 100), (vec![roa(2)], true));
        // A withdrawal that is hidden is not taken for none either.
        let withdrawal = stated(&[own(1, Some(200), &roa(2))], &[theirs(2, false, 150, &roa(2))]);
        assert_eq!(stands(&withdrawal, &mut memory, 101), (vec![], true));
        let hidden = stated(&[own(1, Some(200), &roa(2))], &[]);
        assert_eq!(stands(&hidden, &mut memory, 102), (vec![], false), "and the member's grant is not back");
        assert_eq!(stands(&hidden, &mut memory, 150), (vec![roa(2)], true), "until it has ended");
    }

    /// An issuer that has taken up nothing: what was shown to it alone, or for a while, stops it in nothing afterwards.
    #[test]
    fn who_only_follows_remembers_nothing_of_operators() {
        let mut memory = Memory::default();
        let follows = |all: Stated| Stated { follows: true, ..all };
        let (member, withdrawal) = (own(1, Some(200), &roa(1)), theirs(2, false, 150, &roa(1)));
        let shown = follows(stated(std::slice::from_ref(&member), &[withdrawal]));
        assert_eq!(stands(&shown, &mut memory, 1), (vec![], true));
        assert_eq!((memory.statements_of("acme").count(), memory.statements_of("*acme").count()), (1, 0));
        assert_eq!(stands(&follows(stated(&[member], &[])), &mut memory, 2), (vec![roa(1)], true));
        assert!(!stands(&follows(Stated::default()), &mut memory, 3).1, "what a member has stated is remembered");
    }

    /// Operators take a statement back, and whoever keeps the store does not show that: what they had granted does not go on.
    #[test]
    fn what_was_taken_back_does_not_go_on_where_that_is_hidden() {
        let (grant, back) = (theirs(1, true, 100, &roa(1)), theirs(2, false, 90, &roa(1)));
        let mut memory = Memory::default();
        let mut all = stated(&[own(1, Some(200), &roa(1))], &[grant, back.clone()]);
        all.shown.remove(&back.counted().digest);
        assert_eq!(stands(&all, &mut memory, 1), (vec![], false));
        let (standing, _) = all.standing(&memory, 1, None);
        let said = standing.authorised.unsettled("acme").unwrap();
        assert!(said.contains("withdraw") && said.contains("overrides/ of the store"), "{said}");
        assert!(standing.authorised.overriding("acme").is_empty());
        assert!(standing.holds(89) && !standing.holds(90));
        all.override_by(back);
        assert_eq!(stands(&all, &mut memory, 2), (vec![], true), "it is shown");
        assert_eq!(stands(&all, &mut memory, 100), (vec![roa(1)], true), "and all has ended");
    }

    /// A member's keys are lost, and the registry has taken them out of its data: its grants count no more.
    #[test]
    fn operators_settle_what_a_member_cannot() {
        let mut memory = Memory::default();
        assert!(stands(&stated(&[own(1, Some(100), &roa(1))], &[]), &mut memory, 1).1);
        assert!(!stands(&Stated::default(), &mut memory, 2).1);
        let settled = stated(&[], &[theirs(1, true, 50, &roa(1))]);
        assert_eq!(stands(&settled, &mut memory, 3), (vec![roa(1)], true));
        assert!(!stands(&settled, &mut memory, 50).1, "until that ends");
    }

    #[test]
    fn a_network_has_one_aspa_whoever_states_it() {
        let [members, other] = [2, 3].map(|provider| Attestation::aspa(1, [provider].into()).unwrap());
        let mut memory = Memory::default();
        let all = stated(&[own(1, Some(100), &members)], &[theirs(1, true, 50, &other)]);
        assert_eq!(stands(&all, &mut memory, 1).0, [other]);
        assert_eq!(stands(&all, &mut memory, 50).0, [members]);
    }

    #[test]
    fn a_number_of_a_later_time_does_not_count_yet_and_what_is_lost_is_granted_no_more() {
        let mut memory = Memory::default();
        let later = stated(&[], &[theirs(20 << 20, true, 100, &roa(1))]);
        assert_eq!(stands(&later, &mut memory, 19), (vec![], true));
        assert_eq!(stands(&later, &mut memory, 20), (vec![roa(1)], true));
        // The member does not hold it any more.
        let overclaimed = TakenUp { overclaimed: vec![theirs(20 << 20, true, 100, &roa(1))], ..TakenUp::default() };
        let lost = OfMember { operators: overclaimed, ..OfMember::default() };
        let lost = Stated { members: [("acme".to_owned(), lost)].into(), ..Stated::default() };
        assert_eq!(stands(&lost, &mut memory, 21), (vec![], true));
    }
}
