//! What is authorised at a time: what follows from the statements that count, and from those that have counted before.

use std::collections::{BTreeMap, BTreeSet};

use super::Statement;
use crate::{
    attestation::Attestation,
    memory::{Counted, Digest, Entry, Memory},
};

/// What a registry has of its members' statements.
#[derive(Clone, Debug, Default)]
pub struct Stated {
    /// Those that count, once they begin.
    pub counting: Vec<Statement>,
    /// Those about what their members do not hold.
    pub overclaimed: Vec<Statement>,
    /// Members whose statements are not looked at, by their handles, each with the reason.
    pub refused: BTreeMap<String, String>,
}

impl Stated {
    /// Takes what another has as well.
    pub fn extend(&mut self, other: Self) {
        let Self { counting, overclaimed, refused } = other;
        self.counting.extend(counting);
        self.overclaimed.extend(overclaimed);
        self.refused.extend(refused);
    }

    /// What follows now, and what has to be remembered before anybody acts on it: a statement that has counted is not overtaken by a lower one.
    #[must_use]
    pub fn standing(&self, memory: &Memory, now: i64) -> (Standing, Vec<Entry>) {
        let last = last(&self.counting, now);
        let mut authorised = Authorised { unsettled: self.refused.clone(), ..Authorised::default() };
        let mut entries = Vec::new();
        for ((member, subject), (statement, counted)) in &last {
            let before = memory.counted(member, subject);
            if before.is_some_and(|before| before.rank() > counted.rank()) {
                continue;
            }
            if before != Some(counted) {
                let (member, subject) = ((*member).to_owned(), subject.clone());
                entries.push(Entry::Statement { member, subject, counted: *counted });
            }
            authorised.take(statement, now);
        }
        let mut until = boundary(&self.counting, now);
        // That its member does not hold it any more is the registry's own word, and takes no statement.
        let overclaimed: BTreeSet<Digest> = self.overclaimed.iter().map(Statement::digest).collect();
        for (member, subject, before) in memory.statements().filter(|(_, _, before)| before.grants(now)) {
            let current = last.get(&(member, subject.to_owned()));
            let counts = current.is_some_and(|(_, counted)| counted.rank() >= before.rank());
            if counts || overclaimed.contains(&before.digest) {
                continue;
            }
            authorised.unsettled.entry(member.to_owned()).or_insert_with(|| missing(member, subject, before.number));
            until = until.min(before.until.unwrap_or(until));
        }
        (Standing { authorised, since: now, until }, entries)
    }
}

/// About each subject of each member the statement that decides, of those that have begun.
fn last(statements: &[Statement], now: i64) -> BTreeMap<(&str, String), (&Statement, Counted)> {
    let mut last = BTreeMap::<_, &Statement>::new();
    for statement in statements.iter().filter(|statement| statement.begins() <= now) {
        let current = last.entry((statement.member.as_str(), statement.subject())).or_insert(statement);
        if statement.counts_after(current) {
            *current = statement;
        }
    }
    last.into_iter().map(|(subject, statement)| (subject, (statement, statement.counted()))).collect()
}

/// When the next one begins or ends; the end of time if none does.
fn boundary(statements: &[Statement], now: i64) -> i64 {
    let times = statements.iter().flat_map(|statement| [Some(statement.begins()), statement.until]);
    times.flatten().filter(|time| *time > now).min().unwrap_or(i64::MAX)
}

fn missing(member: &str, subject: &str, number: u64) -> String {
    let short: String = subject.chars().take(45).collect();
    format!(
        "{member}'s statement {number} about {short} counted and counts no more: its file is missing, or a key was replaced. It has to come back, or the member states with a higher number what is to be"
    )
}

/// What is authorised, and for how long that stands if no file changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What is authorised.
    pub authorised: Authorised,
    since: i64,
    until: i64,
}

impl Standing {
    /// Whether it is so at this time, in seconds since 1970.
    #[must_use]
    pub fn holds(&self, now: i64) -> bool {
        (self.since..self.until).contains(&now)
    }
}

/// What members have authorised, at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorised {
    /// By members, and the names of files.
    by_member: BTreeMap<String, BTreeMap<String, Attestation>>,
    unsettled: BTreeMap<String, String>,
}

impl Authorised {
    /// What follows from the statements that count now, whatever counted before: about each subject, the last one decides.
    #[must_use]
    pub fn at(statements: &[Statement], now: i64) -> Self {
        let mut authorised = Self::default();
        last(statements, now).into_values().for_each(|(statement, _)| authorised.take(statement, now));
        authorised
    }

    /// Takes what a statement that decides grants, if it does.
    fn take(&mut self, statement: &Statement, now: i64) {
        if statement.until.is_some_and(|until| now < until) {
            let of_member = self.by_member.entry(statement.member.clone()).or_default();
            of_member.insert(statement.attestation.file_name(), statement.attestation.clone());
        }
    }

    /// What this member has authorised.
    pub fn of(&self, member: &str) -> impl Iterator<Item = &Attestation> {
        self.files(member).map(|(_, attestation)| attestation)
    }

    /// The same, with the names of the files.
    pub fn files(&self, member: &str) -> impl Iterator<Item = (&str, &Attestation)> {
        let of_member = self.by_member.get(member).into_iter().flatten();
        of_member.map(|(file, attestation)| (file.as_str(), attestation))
    }

    /// What this member has authorised that is in the file with this name.
    #[must_use]
    pub fn file(&self, member: &str, file: &str) -> Option<&Attestation> {
        self.by_member.get(member)?.get(file)
    }

    /// Why it is not known what this member has authorised, if it is not.
    #[must_use]
    pub fn unsettled(&self, member: &str) -> Option<&str> {
        self.unsettled.get(member).map(String::as_str)
    }

    /// The members of whom that is not known, each with the reason.
    pub fn all_unsettled(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unsettled.iter().map(|(member, reason)| (member.as_str(), reason.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attestation::Prefix;

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
        Stated { counting: counting.iter().copied().cloned().collect(), ..Stated::default() }
    }

    /// What stands at a time, which is remembered; and whether it is settled.
    fn stands(stated: &Stated, memory: &mut Memory, time: i64) -> (Vec<Attestation>, bool) {
        let (standing, entries) = stated.standing(memory, time);
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
        let (standing, _) = Stated::default().standing(&memory, 2);
        assert_eq!(standing.authorised.all_unsettled().count(), 1);
        assert!(standing.holds(99) && !standing.holds(100) && !standing.holds(1), "until it would have ended");
        assert_eq!(stands(&Stated::default(), &mut memory, 100), (vec![], true), "it has ended");
        let lost = Stated { overclaimed: vec![grant], ..Stated::default() };
        assert_eq!(stands(&lost, &mut memory, 3), (vec![], true), "its member holds it no more");
    }

    #[test]
    fn what_stands_does_so_until_one_begins_or_ends() {
        let all = stated(&[&statement(1, 5, Some(10), &roa(1)), &statement(2, 7, None, &roa(2))]);
        let holds = |at: i64| {
            let (standing, _) = all.standing(&Memory::default(), at);
            (at..20).take_while(|time| standing.holds(*time)).last()
        };
        assert_eq!([0, 4, 5, 7, 10].map(holds), [Some(4), Some(4), Some(6), Some(9), Some(19)]);
    }

    #[test]
    fn a_member_that_is_refused_stops_nobody_else() {
        let (grant, refused) = (statement(1, 0, Some(9), &roa(1)), [("else".to_owned(), "too many".to_owned())].into());
        let all = Stated { refused, ..stated(&[&grant]) };
        let (standing, _) = all.standing(&Memory::default(), 1);
        assert_eq!(standing.authorised.unsettled("else"), Some("too many"));
        assert_eq!((standing.authorised.of("acme").count(), standing.authorised.unsettled("acme")), (1, None));
    }
}
