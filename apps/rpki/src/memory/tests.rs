use super::*;

fn entries() -> [Entry; 8] {
    let authority = || "acme".to_owned();
    let (file, until) = ("a.roa".to_owned(), -5);
    let statement = |subject: &str, until| Entry::Statement {
        member: "acme".to_owned(),
        subject: subject.to_owned(),
        counted: Counted { number: u64::MAX, digest: [9; 32], until },
    };
    [
        Entry::Certificate {
            authority: authority(),
            serial: [1; 20],
            digest: [2; 32],
            file,
            from: -9,
            until,
            key: [7; 20],
        },
        Entry::List { authority: authority(), number: [3; 20], digest: [4; 32], from: 1 },
        Entry::Revoked { authority: authority(), serial: [1; 20] },
        Entry::Published { authority: authority(), serial: [1; 20], file: "a.roa".to_owned(), from: -7, until },
        Entry::Manifest { authority: authority(), number: [5; 20], digest: [6; 32], key: [9; 20], from: 2, until: 3 },
        Entry::Content { key: [7; 20], digest: [8; 32], authority: authority(), from: 4 },
        statement("aspa-1", Some(7)),
        statement("aspa-2", None),
    ]
}

#[test]
fn what_is_written_is_read() {
    let mut memory = Memory::default();
    for entry in entries() {
        assert_eq!(entry.to_string().parse::<Entry>(), Ok(entry.clone()));
        assert!(!memory.knows(&entry));
        memory.learn(entry.clone());
        assert!(memory.knows(&entry));
    }
    for line in ["list acme 00", "statement acme aspa-1 1 00 -", "statement acme aspa-1 -1 00 -", "memory v1", ""] {
        assert_eq!(line.parse::<Entry>(), Err(()), "{line}");
    }
}

#[test]
fn the_highest_statement_counts() {
    let mut memory = Memory::default();
    let counted = |number, digest: u8| Counted { number, digest: [digest; 32], until: None };
    for (number, digest) in [(2, 5), (1, 9), (2, 6), (2, 4)] {
        let (member, subject) = ("acme".to_owned(), "aspa-1".to_owned());
        memory.learn(Entry::Statement { member, subject, counted: counted(number, digest) });
    }
    let all: Vec<_> = memory.statements_of("acme").collect();
    assert_eq!((all, memory.members().collect()), (vec![("aspa-1", &counted(2, 6))], vec!["acme"]));
    assert!(memory.counted("acme", "aspa-2").is_none() && memory.counted("else", "aspa-1").is_none());
}

#[test]
fn the_highest_number_counts_and_certificates_are_counted_by_their_beginnings() {
    let mut memory = Memory::default();
    let list = |number| Entry::List { authority: "a".to_owned(), number: [number; 20], digest: [0; 32], from: 0 };
    [list(2), list(1)].into_iter().for_each(|entry| memory.learn(entry));
    assert!(
        [list(1), list(2)].iter().all(|entry| memory.knows(entry)) && !memory.knows(&list(3)),
        "it is no line again"
    );
    assert_eq!(memory.of("a").unwrap().list(), Some(&Last { number: [2; 20], digest: [0; 32], from: 0 }));
    [certificate(1, 5, 0), certificate(2, 6, 0)].into_iter().for_each(|entry| memory.learn(entry));
    let issued = memory.of("a").unwrap();
    assert_eq!((issued.begun("f", 4), issued.begun("f", 5), issued.begun("g", 0)), (2, 1, 0));
    memory.learn(Entry::Revoked { authority: "a".to_owned(), serial: [2; 20] });
    assert_eq!(memory.of("a").unwrap().begun("f", 4), 2);
}

fn certificate(serial: u8, from: i64, key: u8) -> Entry {
    let (authority, file) = ("a".to_owned(), "f".to_owned());
    Entry::Certificate { authority, serial: [serial; 20], digest: [0; 32], file, from, until: 9, key: [key; 20] }
}

#[test]
fn keys_are_counted_by_what_they_are_for() {
    let mut memory = Memory::default();
    let content = |key, from| Entry::Content { key: [key; 20], digest: [0; 32], authority: "a".to_owned(), from };
    let (one, manifests) = (Purpose::Content([0; 32]), Purpose::Manifests("a".to_owned()));
    [content(1, 5), content(2, 6), content(1, 7)].into_iter().for_each(|entry| memory.learn(entry));
    let counted = [4, 5, 6].map(|since| memory.keys_since(&one, since));
    assert_eq!((counted, memory.keys_since(&manifests, 0)), ([2, 1, 0], 0));
    assert!(memory.has_keys(&one) && !memory.has_keys(&manifests));
    assert_eq!((memory.contents_of("a"), memory.contents_of("b")), (Some(&[[0; 32]].into()), None), "two keys for one");
    let (number, digest, key) = ([0; 20], [0; 32], [3; 20]);
    memory.learn(Entry::Manifest { authority: "a".to_owned(), number, digest, key, from: 1, until: 0 });
    assert_eq!((memory.purpose(&key), memory.keys_since(&manifests, 0)), (Some(&manifests), 1));
}

#[test]
fn certificates_of_the_last_manifest_are_counted_whichever_of_its_keys_they_are_for() {
    let mut memory = Memory::default();
    let manifest = |number, key| {
        let (authority, digest) = ("a".to_owned(), [number; 32]);
        Entry::Manifest { authority, number: [number; 20], digest, key: [key; 20], from: 0, until: 9 }
    };
    let certificates = |memory: &Memory| memory.of("a").unwrap().manifest().unwrap().certificates;
    for entry in [manifest(1, 7), certificate(1, 0, 7), certificate(2, 0, 7), certificate(3, 0, 8)] {
        memory.learn(entry);
    }
    assert_eq!(certificates(&memory), 2, "one is for another key");
    [manifest(1, 8), certificate(4, 0, 8)].into_iter().for_each(|entry| memory.learn(entry));
    assert_eq!(certificates(&memory), 3, "the same manifest, by another key");
    assert_eq!(memory.of("a").unwrap().manifest().unwrap().changes, 1);
    memory.learn(manifest(2, 7));
    assert_eq!(certificates(&memory), 0);
    // One before the last binds a key that is free, and says nothing else.
    assert_eq!([7, 8, 9].map(|key| memory.knows(&manifest(1, key))), [true, true, false]);
}

#[test]
fn what_is_on_manifests_is_known_until_another_takes_its_place() {
    let mut memory = Memory::default();
    let published = |serial: u8, file: &str, from| {
        let (authority, file) = ("a".to_owned(), file.to_owned());
        Entry::Published { authority, serial: [serial; 20], file, from, until: 99 }
    };
    for entry in [published(1, "f", 5), published(2, "g", 5), published(3, "f", 7)] {
        assert!(!memory.knows(&entry));
        memory.learn(entry);
    }
    let exposed = |memory: &Memory, since| {
        memory.of("a").unwrap().exposed(since).map(|(serial, _)| serial[0]).collect::<Vec<_>>()
    };
    assert_eq!([6, 7].map(|since| exposed(&memory, since)), [vec![1, 2, 3], vec![2, 3]]);
    assert!(memory.knows(&published(3, "f", 8)) && !memory.knows(&published(1, "f", 8)));
    // It is there again.
    memory.learn(published(1, "f", 9));
    assert_eq!([8, 9].map(|since| exposed(&memory, since)), [vec![1, 2, 3], vec![1, 2]]);
    assert!([1, 2, 3].iter().all(|serial| memory.of("a").unwrap().is_published(&[*serial; 20])));
}
