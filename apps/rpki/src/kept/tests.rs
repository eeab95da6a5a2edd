use super::*;

fn content(key: u8) -> Entry {
    Entry::Content { key: [key; 20], digest: [8; 32], authority: "acme".to_owned(), from: 0 }
}

#[test]
fn a_lost_memory_is_not_begun_anew_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    assert!(matches!(Kept::open(&path), Err(MemoryError::Missing(_))));
    assert!(!path.exists());
    // What a crash has left of one that was begun.
    fs::write(folder.path().join("memory.new"), "mem").unwrap();
    drop(Kept::begin(&path).unwrap());
    assert!(matches!(Kept::begin(&path), Err(MemoryError::Exists(_))), "what is known is not thrown away either");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(Kept::open(&path).unwrap());
    fs::write(&path, "").unwrap();
    assert!(matches!(Kept::open(&path), Err(MemoryError::Line { line: 1, .. })), "emptied");
}

#[test]
fn one_agent_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let first = Kept::begin(&path).unwrap();
    assert!(matches!(Kept::open(&path), Err(MemoryError::Busy(_))));
    drop(first);
    Kept::open(&path).unwrap();
}

#[test]
fn what_was_agreed_to_is_known_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let mut kept = Kept::begin(&path).unwrap();
    kept.remember(&[content(1), content(2)]).unwrap();
    kept.remember(&[content(1), content(2)]).unwrap();
    drop(kept);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3, "each once, after the first line");
    fs::write(&path, format!("{text}list acme 00")).unwrap();
    assert!(look(&path).unwrap().knows(&content(2)), "while it is written");
    let mut kept = Kept::open(&path).unwrap();
    assert!([content(1), content(2)].iter().all(|entry| kept.memory().knows(entry)));
    kept.remember(&[content(3)]).unwrap();
    drop(kept);
    assert!(Kept::open(&path).unwrap().memory().knows(&content(3)), "written after what was left of a line");
    fs::write(&path, format!("{text}list acme 00\n")).unwrap();
    assert!(matches!(Kept::open(&path), Err(MemoryError::Line { line: 4, .. })));
}

#[test]
fn after_a_failure_nothing_is_remembered_until_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let mut kept = Kept::begin(&path).unwrap();
    kept.remember(&[content(1)]).unwrap();
    let good = kept.file.try_clone().unwrap();
    // A file that is open for reading alone is one that can be neither written nor cut.
    kept.file = File::open(&path).unwrap();
    assert!(matches!(kept.remember(&[content(2)]), Err(MemoryError::File { .. })));
    kept.file = good;
    for entry in [content(1), content(2)] {
        assert!(matches!(kept.remember(&[entry]), Err(MemoryError::Spoiled(_))));
    }
    drop(kept);
    let mut kept = Kept::open(&path).unwrap();
    assert!(kept.memory().knows(&content(1)) && !kept.memory().knows(&content(2)));
    kept.remember(&[content(2)]).unwrap();
}

fn list(number: u32) -> Entry {
    let [a, b, c, d] = number.to_be_bytes();
    let mut digits = [0; 20];
    digits[..4].copy_from_slice(&[a, b, c, d]);
    Entry::List { authority: "acme".to_owned(), number: digits, digest: [1; 32], from: i64::from(number) }
}

/// Whatever somebody asks for, and however long the agent runs.
#[test]
fn it_stays_short_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let mut kept = Kept::begin(&path).unwrap();
    kept.remember(&[content(7)]).unwrap();
    for first in (1..=50_000).step_by(100) {
        let lists: Vec<_> = (first..first + 100).map(list).collect();
        kept.remember(&lists).unwrap();
        assert!(fs::metadata(&path).unwrap().len() < 1_400_000, "of 6 million bytes");
    }
    assert!(kept.memory().knows(&content(7)) && kept.memory().knows(&list(50_000)));
    assert!(matches!(Kept::open(&path), Err(MemoryError::Busy(_))), "the new file is locked as well");
    kept.remember(&[content(8)]).unwrap();
    drop(kept);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let kept = Kept::open(&path).unwrap();
    assert!([content(7), content(8), list(50_000)].iter().all(|entry| kept.memory().knows(entry)));
}

/// One that cannot be shortened goes on as it is.
#[test]
fn it_goes_on_where_it_cannot_be_shortened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let mut kept = Kept::begin(&path).unwrap();
    fs::create_dir(folder.path().join("memory.new")).unwrap();
    let lists: Vec<_> = (1..=15_000).map(list).collect();
    lists.chunks(5_000).for_each(|some| kept.remember(some).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 15_001);
    fs::remove_dir(folder.path().join("memory.new")).unwrap();
    drop(kept);
    assert!(Kept::open(&path).unwrap().memory().knows(&list(15_000)));
    assert!(fs::read_to_string(&path).unwrap().lines().count() < 100);
}

/// Years after, most is over; a crash while it is written anew leaves what there was.
#[test]
fn what_is_over_is_taken_out_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let lines: String =
        [content(7)].into_iter().chain((1..=12_000).map(list)).map(|entry| format!("{entry}\n")).collect();
    fs::write(&path, format!("{FIRST}\n{lines}")).unwrap();
    fs::write(folder.path().join("memory.new"), "mem").unwrap();
    let long = fs::metadata(&path).unwrap().len();
    let mut kept = Kept::open(&path).unwrap();
    assert!(fs::metadata(&path).unwrap().len() * 100 < long);
    assert!(kept.memory().knows(&content(7)) && kept.memory().knows(&list(12_000)));
    assert!(matches!(Kept::open(&path), Err(MemoryError::Busy(_))), "the new file is locked as well");
    kept.remember(&[content(8)]).unwrap();
    drop(kept);
    let kept = Kept::open(&path).unwrap();
    assert!(kept.memory().knows(&content(8)) && kept.memory().knows(&list(12_000)));
}

#[test]
fn a_line_without_an_end_is_not_read_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    fs::write(&path, format!("{FIRST}\n{}", "x".repeat(100_000))).unwrap();
    assert!(matches!(Kept::open(&path), Err(MemoryError::Line { line: 2, .. })));
}
