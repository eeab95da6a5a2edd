//! What is authorised at a time: what follows from the statements that count, of members and of operators in their places, and from those that have counted before.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Identified, Statement,
    layer::{Decided, Layer, OPERATORS, boundary, last},
};
use crate::{
    attestation::Attestation,
    memory::{Digest, Entry, Memory},
};

/// About so many different things a member may have stated, over all time: what has decided about each is remembered.
pub const MOST_SUBJECTS: usize = 40_000;

/// What a registry has of one member's statements.
#[derive(Clone, Debug, Default)]
pub struct OfMember {
    /// Those that count, once they begin.
    pub counting: Vec<Identified>,
    /// Those about what the member does not hold.
    pub overclaimed: Vec<Identified>,
    /// Why none of them is looked at, if that is so.
    pub refused: Option<String>,
    /// What this registry has taken up of what operators state in the member's place.
    pub operators: TakenUp,
}

/// What a registry has of operators' statements in a member's place.
#[derive(Clone, Debug, Default)]
pub struct TakenUp {
    /// Those that count, once they begin, if all registries see them.
    pub counting: Vec<Identified>,
    /// Those that grant what the member does not hold.
    pub overclaimed: Vec<Identified>,
}

/// What a registry has of its members' statements, and of operators' in their places.
#[derive(Clone, Debug, Default)]
pub struct Stated {
    /// By the members' handles.
    pub members: BTreeMap<String, OfMember>,
    /// Which of the operators' statements all registries see, by what is remembered of them.
    pub shown: BTreeSet<Digest>,
    /// Whether those are followed as they are seen, and nothing of them is remembered: by somebody who has taken up none of them and decides nothing.
    pub follows: bool,
}

impl FromIterator<Statement> for Stated {
    /// Statements that count.
    fn from_iter<T: IntoIterator<Item = Statement>>(statements: T) -> Self {
        let mut stated = Self::default();
        for statement in statements {
            let of_member = stated.members.entry(statement.member.clone()).or_default();
            of_member.counting.push(Identified::new(statement));
        }
        stated
    }
}

impl Stated {
    /// Takes up what operators state in a member's place, which all registries see.
    pub fn override_by(&mut self, one: Identified) {
        self.shown.insert(one.counted().digest);
        let of_member = self.members.entry(one.statement().member.clone()).or_default();
        of_member.operators.counting.push(one);
    }

    /// What follows now, and what has to be remembered before anybody acts on it: a statement that has counted is not overtaken by a lower one. Of what stood
    /// `before` by the same files and memory what still stands is taken from there, member by member.
    #[must_use]
    pub fn standing(&self, memory: &Memory, now: i64, before: Option<Standing>) -> (Standing, Vec<Entry>) {
        let (none, mut entries) = (OfMember::default(), Vec::new());
        let mut before = before.map(|before| before.authorised.by_member).unwrap_or_default();
        let remembered = memory.members().map(|name| name.strip_prefix(OPERATORS).unwrap_or(name));
        let members: BTreeSet<&str> = self.members.keys().map(String::as_str).chain(remembered).collect();
        let by_member = members.into_iter().map(|member| {
            let stands = before.remove(member).filter(|stands| stands.holds(now)).unwrap_or_else(|| {
                let of_member = self.members.get(member).unwrap_or(&none);
                let (stands, new) = of_member.standing(member, self, memory, now);
                entries.extend(new);
                stands
            });
            (member.to_owned(), stands)
        });
        let by_member = by_member.collect();
        (Standing { authorised: Authorised { by_member } }, entries)
    }
}

impl OfMember {
    /// What operators state in the member's place decides about its subject while it lasts, whatever the member's own statements are and whatever their numbers: a
    /// court may have decided against the member, and a thief may have the keys that it has lost. So the two are ordered, and remembered, each by itself.
    fn standing(&self, member: &str, all: &Stated, memory: &Memory, now: i64) -> (Stands, Vec<Entry>) {
        let (shown, nothing) = (&all.shown, Memory::default());
        let seen = self.operators.counting.iter().filter(|one| shown.contains(&one.counted().digest));
        let (seen, name) = (seen.cloned().collect::<Vec<_>>(), format!("{OPERATORS}{member}"));
        let theirs = Layer { name: &name, counting: &seen, overclaimed: &self.operators.overclaimed };
        let of_theirs = if all.follows { &nothing } else { memory };
        let (mut operators, mut entries) = theirs.decided(&BTreeSet::new(), of_theirs, now);
        if all.follows {
            entries.clear();
        }
        self.operators.miss_hidden(&seen, shown, &mut operators, now);
        let settled = operators.in_force.iter().map(|one| one.subject()).collect();
        let own = Layer { name: member, counting: &self.counting, overclaimed: &self.overclaimed };
        let (own, more) = own.decided(&settled, memory, now);
        entries.extend(more);
        let granted = operators.in_force.iter().filter(|one| one.statement().is_grant());
        // What operators have decided about and is not known: neither they nor the member authorise it until it is.
        let is_members =
            |one: &&Identified| !settled.contains(one.subject()) && !operators.unknown.contains(one.subject());
        let files = own.in_force.iter().filter(is_members).chain(granted);
        let files = files.map(|one| (one.file().to_owned(), one.clone())).collect();
        let unsettled = self.refused.clone().or(operators.missing).or(own.missing);
        let (since, until) = (now, own.until.min(operators.until));
        (Stands { files, overriding: operators.in_force, unsettled, since, until }, entries)
    }
}

impl TakenUp {
    /// A later statement that this registry has taken up, and that not all registries see, decides nothing; but the one before it, which they see, does not go on as if
    /// there were no later one: else whoever keeps the store could keep operators from taking a statement back.
    fn miss_hidden(&self, seen: &[Identified], shown: &BTreeSet<Digest>, decided: &mut Decided, now: i64) {
        let in_force = last(seen, now);
        let is_hidden = |one: &&Identified| !shown.contains(&one.counted().digest) && one.statement().begins() <= now;
        for one in self.counting.iter().filter(is_hidden) {
            let Some(before) = in_force.get(one.subject()).map(|before| before.counted()) else { continue };
            if before.grants(now) && one.counted().rank() > before.rank() {
                decided.unknown.insert(one.subject().to_owned());
                let reason = || {
                    format!("{}, which not all registries see: put it into overrides/ of the store", one.overriding())
                };
                decided.missing.get_or_insert_with(reason);
            }
        }
        decided.in_force.retain(|one| !decided.unknown.contains(one.subject()));
        decided.until = decided.until.min(boundary(&self.counting, now));
    }
}

/// What is authorised, and for how long that stands if no file changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What is authorised.
    pub authorised: Authorised,
}

impl Standing {
    /// Whether it is so at this time, in seconds since 1970.
    #[must_use]
    pub fn holds(&self, now: i64) -> bool {
        self.authorised.by_member.values().all(|stands| stands.holds(now))
    }
}

/// What a member has authorised, for how long that stands, and why it is not known, if it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stands {
    /// By the names of files.
    files: BTreeMap<String, Identified>,
    /// What operators state in its place.
    overriding: Vec<Identified>,
    unsettled: Option<String>,
    since: i64,
    until: i64,
}

impl Stands {
    fn holds(&self, now: i64) -> bool {
        (self.since..self.until).contains(&now)
    }
}

/// What members have authorised, at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorised {
    by_member: BTreeMap<String, Stands>,
}

impl Authorised {
    /// What follows from the statements that count now, whatever counted before: about each subject, the last one decides.
    #[must_use]
    pub fn at(statements: &[Statement], now: i64) -> Self {
        let stated: Stated = statements.iter().cloned().collect();
        stated.standing(&Memory::default(), now, None).0.authorised
    }

    /// What this member has authorised.
    pub fn of(&self, member: &str) -> impl Iterator<Item = &Attestation> {
        self.files(member).map(|(_, attestation)| attestation)
    }

    /// The same, with the names of the files.
    pub fn files(&self, member: &str) -> impl Iterator<Item = (&str, &Attestation)> {
        let of_member = self.by_member.get(member).into_iter().flat_map(|stands| &stands.files);
        of_member.map(|(file, one)| (file.as_str(), &one.statement().attestation))
    }

    /// What this member has authorised that is in the file with this name.
    #[must_use]
    pub fn file(&self, member: &str, file: &str) -> Option<&Attestation> {
        Some(&self.by_member.get(member)?.files.get(file)?.statement().attestation)
    }

    /// The statement by which this member has authorised what is in the file with this name.
    #[must_use]
    pub fn statement(&self, member: &str, file: &str) -> Option<&Identified> {
        self.by_member.get(member)?.files.get(file)
    }

    /// What operators state in this member's place now: grants and withdrawals.
    #[must_use]
    pub fn overriding(&self, member: &str) -> &[Identified] {
        self.by_member.get(member).map_or(&[], |stands| &stands.overriding)
    }

    /// Why it is not known what this member has authorised, if it is not.
    #[must_use]
    pub fn unsettled(&self, member: &str) -> Option<&str> {
        self.by_member.get(member)?.unsettled.as_deref()
    }

    /// The members of whom that is not known, each with the reason.
    pub fn all_unsettled(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_member.iter().filter_map(|(member, stands)| Some((member.as_str(), stands.unsettled.as_deref()?)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        attestation::{Prefix, encoded},
        memory::Counted,
    };

    fn statement(number: u64, from: i64, until: Option<i64>, attestation: &Attestation) -> Statement {
        let (rpki, member, attestation) = ("example".to_owned(), "acme".to_owned(), attestation.clone());
        Statement { rpki, member, number, from, until, attestation }
    }

    fn roa(asn: u32) -> Attestation {
        Attestation::roa(asn, ["192.0.2.0/24".parse::<Prefix>().unwrap()].into()).unwrap()
    }

    fn now(statements: &[Statement], time: i64) -> Vec<Attestation> {
        Authorised::at(statements, time).of("acme").cloned().collect()
    }

    fn stated(counting: &[&Statement]) -> Stated {
        counting.iter().copied().cloned().collect()
    }

    /// What stands at a time, which is remembered; and whether it is settled.
    pub(crate) fn stands(stated: &Stated, memory: &mut Memory, time: i64) -> (Vec<Attestation>, bool) {
        let (standing, entries) = stated.standing(memory, time, None);
        entries.into_iter().for_each(|entry| memory.learn(entry));
        let authorised = standing.authorised;
        (authorised.of("acme").cloned().collect(), authorised.unsettled("acme").is_none())
    }

    #[test]
    fn the_last_statement_about_something_counts() {
        let (one, two) = (roa(1), roa(2));
        let all = [
            statement(1, 0, Some(100), &one),
            statement(2, 0, Some(100), &two),
            statement(3, 10, None, &one),
            statement(4, 20, Some(50), &one),
        ];
        assert_eq!(now(&all, 5), [one.clone(), two.clone()]);
        assert_eq!(now(&all, 10), std::slice::from_ref(&two), "withdrawn");
        assert_eq!(now(&all, 20), [one, two.clone()], "granted again");
        assert_eq!(now(&all, 50), [two], "the last grant has ended, and the first does not come back");
        assert!(now(&all, 100).is_empty());
    }

    #[test]
    fn a_network_has_one_aspa() {
        let [old, new] = [2, 3].map(|provider| Attestation::aspa(1, [provider].into()).unwrap());
        let all = [statement(2, 0, Some(9), &new), statement(1, 0, Some(9), &old)];
        assert_eq!(now(&all, 1), [new]);
        // Whatever the withdrawal says of providers.
        assert!(now(&[&all[..], &[statement(3, 0, None, &old)]].concat(), 1).is_empty());
    }

    #[test]
    fn the_order_of_files_does_not_matter() {
        let equal = [statement(1, 0, Some(9), &roa(1)), statement(1, 0, None, &roa(1))];
        let turned = [equal[1].clone(), equal[0].clone()];
        assert_eq!(now(&equal, 1), now(&turned, 1));
    }

    #[test]
    fn a_number_of_a_later_time_does_not_count_yet() {
        let all = [statement(1, 0, Some(100), &roa(1)), statement(20 << 20, 0, None, &roa(1))];
        assert_eq!(now(&all, 19), [roa(1)]);
        assert!(now(&all, 20).is_empty());
    }

    #[test]
    fn what_has_counted_is_not_overtaken_by_a_lower_number() {
        let (one, grant, withdrawal) = (roa(1), statement(1, 0, Some(100), &roa(1)), statement(2, 5, None, &roa(1)));
        let mut memory = Memory::default();
        let both = stated(&[&grant, &withdrawal]);
        assert_eq!(stands(&both, &mut memory, 1), (vec![one.clone()], true));
        assert_eq!(stands(&both, &mut memory, 5), (vec![], true));
        // The withdrawal's file went, or it counts no more: what it did stays.
        assert_eq!(stands(&stated(&[&grant]), &mut memory, 6), (vec![], true));
        let again = statement(3, 0, Some(100), &one);
        assert_eq!(stands(&stated(&[&grant, &again]), &mut memory, 7), (vec![one], true));
    }

    #[test]
    fn a_grant_that_is_missing_is_neither_granted_nor_withdrawn() {
        let (grant, old) = (statement(2, 0, Some(100), &roa(1)), statement(1, 0, None, &roa(1)));
        let mut memory = Memory::default();
        assert_eq!(stands(&stated(&[&grant]), &mut memory, 1), (vec![roa(1)], true));
        assert_eq!(stands(&Stated::default(), &mut memory, 2), (vec![], false));
        assert_eq!(stands(&stated(&[&old]), &mut memory, 2), (vec![], false), "a lower number settles nothing");
        let (standing, _) = Stated::default().standing(&memory, 2, None);
        assert_eq!(standing.authorised.all_unsettled().count(), 1);
        assert!(standing.holds(99) && !standing.holds(100) && !standing.holds(1), "until it would have ended");
        assert_eq!(stands(&Stated::default(), &mut memory, 100), (vec![], true), "it has ended");
        let lost = OfMember { overclaimed: vec![Identified::new(grant)], ..OfMember::default() };
        let lost = Stated { members: [("acme".to_owned(), lost)].into(), ..Stated::default() };
        assert_eq!(stands(&lost, &mut memory, 3), (vec![], true), "its member holds it no more");
    }

    #[test]
    fn what_stands_does_so_until_one_begins_or_ends() {
        let all = stated(&[&statement(1, 5, Some(10), &roa(1)), &statement(2, 7, None, &roa(2))]);
        let holds = |at: i64| {
            let (standing, _) = all.standing(&Memory::default(), at, None);
            (at..20).take_while(|time| standing.holds(*time)).last()
        };
        assert_eq!([0, 4, 5, 7, 10].map(holds), [Some(4), Some(4), Some(6), Some(9), Some(19)]);
    }

    #[test]
    fn a_member_that_is_refused_stops_nobody_else() {
        let grant = statement(1, 0, Some(9), &roa(1));
        let mut all = stated(&[&grant]);
        all.members.entry("else".to_owned()).or_default().refused = Some("too many".to_owned());
        let (standing, _) = all.standing(&Memory::default(), 1, None);
        assert_eq!(standing.authorised.unsettled("else"), Some("too many"));
        assert_eq!((standing.authorised.of("acme").count(), standing.authorised.unsettled("acme")), (1, None));
    }

    /// Statements of one member begin and end all the time: that costs the others nothing, and no content is encoded for it.
    #[test]
    fn what_follows_later_costs_no_encoding_and_others_nothing() {
        let all = [
            statement(1, 5, Some(10), &roa(1)),
            statement(2, 7, None, &roa(2)),
            Statement { member: "else".to_owned(), ..statement(1, 0, Some(100), &roa(3)) },
        ];
        let (stated, mut memory): (Stated, _) = (all.into_iter().collect(), Memory::default());
        let before = encoded();
        let mut standing = None;
        for now in 0..20 {
            let (next, entries) = stated.standing(&memory, now, standing);
            entries.into_iter().for_each(|entry| memory.learn(entry));
            assert_eq!(next.authorised.by_member["else"].since, 0, "it still stands");
            assert_eq!(next.authorised, stated.standing(&memory, now, Some(next.clone())).0.authorised);
            standing = Some(next);
        }
        assert_eq!(encoded(), before);
    }

    /// A clock was ahead for a while: what had begun by it has not, and what counts now counts.
    #[test]
    fn what_counted_by_a_clock_that_was_ahead_does_not_stand_in_the_way() {
        const DAY: i64 = 86_400;
        let grant = statement(7, 0, Some(365 * DAY), &roa(1));
        let by_from = [statement(8, 50 * DAY, None, &roa(1)), statement(8, 50 * DAY, Some(99 * DAY), &roa(1))];
        let by_number = statement(u64::try_from(50 * DAY).unwrap() << 20, 0, None, &roa(1));
        for next in by_from.into_iter().chain([by_number.clone()]) {
            let (all, mut memory) = (stated(&[&grant, &next]), Memory::default());
            stands(&all, &mut memory, DAY);
            assert!(stands(&all, &mut memory, 60 * DAY).1);
            assert_eq!(memory.statements_of("acme").next().unwrap().1.number, next.number);
            let (standing, entries) = all.standing(&memory, 2 * DAY, None);
            assert!(entries.is_empty(), "nothing is written again and again");
            assert_eq!((standing.authorised.of("acme").count(), standing.authorised.unsettled("acme")), (1, None));
            assert!(standing.holds(50 * DAY - 1) && !standing.holds(50 * DAY));
            assert_eq!(stands(&all, &mut memory, 50 * DAY).0.len(), usize::from(next.is_grant()));
        }
        // The number says so itself, though the file is not there.
        let mut memory = Memory::default();
        stands(&stated(&[&grant, &by_number]), &mut memory, 60 * DAY);
        let (standing, _) = stated(&[&grant]).standing(&memory, 2 * DAY, None);
        assert!(standing.authorised.of("acme").count() == 1 && !standing.holds(50 * DAY));
    }

    #[test]
    fn what_is_missing_is_told_with_what_is_there() {
        let (grant, old) = (statement(7, 0, Some(100), &roa(1)), statement(6, 0, Some(100), &roa(1)));
        let next = statement(8, 50, Some(100), &roa(1));
        let mut memory = Memory::default();
        stands(&stated(&[&grant]), &mut memory, 1);
        let (standing, _) = stated(&[&old, &next]).standing(&memory, 2, None);
        let said = standing.authorised.unsettled("acme").unwrap();
        assert!(said.contains("statement 7 about roa-") && said.contains("counted and counts no more"), "{said}");
        assert!(said.contains("6 is an older one") && said.contains("its successor 8 begins only at 50"), "{said}");
    }

    /// A member that states about ever new things stops itself, and goes on with what it has stated about.
    #[test]
    fn a_member_states_about_so_many_things() {
        let mut memory = Memory::default();
        let counted = Counted { number: 1, digest: [0; 32], until: Some(1) };
        for subject in 1..MOST_SUBJECTS {
            let (member, subject) = ("acme".to_owned(), format!("aspa-{subject}"));
            memory.learn(Entry::Statement { member, subject, counted });
        }
        let (one, two) = (statement(1, 0, Some(9), &roa(1)), statement(2, 0, Some(9), &roa(2)));
        assert_eq!(stands(&stated(&[&one]), &mut memory, 1), (vec![roa(1)], true));
        assert_eq!(stands(&stated(&[&one, &two]), &mut memory, 2), (vec![roa(1)], true));
        let again = statement(3, 0, None, &roa(1));
        assert_eq!(stands(&stated(&[&one, &two, &again]), &mut memory, 3), (vec![], true));
    }
}
