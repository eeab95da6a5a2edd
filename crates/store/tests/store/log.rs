//! The journal of ceremonies and the audit log.

use theta_groups::Secret;
use theta_store::{AuditChain, JournalError, StoreError, disk::SimulatedDisk};

use crate::{create, open};

const ID: [u8; 32] = [4; 32];

fn input(byte: u8) -> Secret<Vec<u8>> {
    Secret::new(vec![byte; 3])
}

#[test]
fn a_ceremony_is_resumed_from_its_seed_and_inputs() {
    let disk = SimulatedDisk::default();
    let store = create(&disk);
    store.write(|tx| tx.begin_ceremony(ID, b"dkg of key a", Secret::new([9; 32]), 100)).unwrap();
    for index in 0..3 {
        store.record_input(ID, index, input(u8::try_from(index).unwrap())).unwrap();
    }
    drop(store);
    let store = open(&disk);
    let ceremony = store.ceremony(&ID).unwrap().unwrap();
    assert_eq!(
        (ceremony.subject.as_slice(), ceremony.started, ceremony.inputs()),
        (b"dkg of key a".as_slice(), 100, 3)
    );
    assert_eq!(ceremony.seed.unwrap().expose(), &[9; 32]);
    let inputs = store.ceremony_inputs(&ID).unwrap();
    assert_eq!(inputs.iter().map(|input| input.expose().clone()).collect::<Vec<_>>(), [[0; 3], [1; 3], [2; 3]]);
}

#[test]
fn inputs_follow_each_other() {
    let store = create(&SimulatedDisk::default());
    assert!(matches!(store.record_input(ID, 0, input(0)), Err(JournalError::Unknown)));
    store.write(|tx| tx.begin_ceremony(ID, b"", Secret::new([9; 32]), 0)).unwrap();
    let again = store.write(|tx| tx.begin_ceremony(ID, b"", Secret::new([8; 32]), 0));
    assert!(matches!(again, Err(JournalError::Exists)));
    store.record_input(ID, 0, input(0)).unwrap();
    for index in [0, 2] {
        let error = store.record_input(ID, index, input(0)).unwrap_err();
        assert!(matches!(error, JournalError::Gap { next: 1, .. }), "{error}");
    }
    let long = store.record_input(ID, 1, Secret::new(vec![0; (4 << 20) + 1])).unwrap_err();
    assert!(matches!(long, JournalError::TooMuch { .. }), "{long}");
    assert_eq!(store.ceremony_inputs(&ID).unwrap().len(), 1);
}

/// A run of ticks is one record with a count, which is rewritten.
#[test]
fn the_last_input_can_be_exchanged_and_no_other() {
    let disk = SimulatedDisk::default();
    let store = create(&disk);
    store.write(|tx| tx.begin_ceremony(ID, b"subject", Secret::new([1; 32]), 1)).unwrap();
    let amend = |index, bytes: Vec<u8>| store.write(|tx| tx.amend_input(&ID, index, &Secret::new(bytes)));
    assert!(matches!(amend(0, vec![1]), Err(JournalError::Gap { .. })));
    store.record_input(ID, 0, input(0)).unwrap();
    store.record_input(ID, 1, input(1)).unwrap();
    for count in 0..100 {
        amend(1, vec![count; 5]).unwrap();
    }
    for index in [0, 2] {
        assert!(matches!(amend(index, vec![1]), Err(JournalError::Gap { .. })));
    }
    assert!(matches!(amend(1, vec![0; (4 << 20) + 1]), Err(JournalError::TooMuch { .. })));
    let inputs = store.ceremony_inputs(&ID).unwrap();
    let inputs: Vec<&[u8]> = inputs.iter().map(|input| &input.expose()[..]).collect();
    assert_eq!(inputs, [&input(0).expose()[..], &[99; 5]]);
    assert_eq!(store.ceremony(&ID).unwrap().unwrap().inputs(), 2);
}

#[test]
fn what_has_ended_keeps_its_outcome_and_forgets_its_seed() {
    let store = create(&SimulatedDisk::default());
    store.write(|tx| tx.begin_ceremony(ID, b"x", Secret::new([9; 32]), 0)).unwrap();
    store.record_input(ID, 0, input(0)).unwrap();
    assert!(matches!(store.write(|tx| tx.forget_ceremony(&ID)), Err(JournalError::Running)));
    store.write(|tx| tx.end_ceremony(&ID, b"certified", &[])).unwrap();
    let ceremony = store.ceremony(&ID).unwrap().unwrap();
    assert!(ceremony.seed.is_none());
    assert_eq!(ceremony.outcome.as_deref(), Some(b"certified".as_slice()));
    assert!(store.ceremony_inputs(&ID).unwrap().is_empty());
    assert!(matches!(store.record_input(ID, 1, input(0)), Err(JournalError::Ended)));
    assert!(matches!(store.write(|tx| tx.end_ceremony(&ID, b"failed", &[])), Err(JournalError::Ended)));
    assert_eq!(store.ceremonies().unwrap().len(), 1);
    store.write(|tx| tx.forget_ceremony(&ID)).unwrap();
    assert!(store.ceremonies().unwrap().is_empty());
}

#[test]
fn what_runs_is_discarded_and_begun_anew() {
    let store = create(&SimulatedDisk::default());
    let begin = |seed| store.write(move |tx| tx.begin_ceremony(ID, b"x", Secret::new([seed; 32]), 0));
    begin(9).unwrap();
    store.record_input(ID, 0, input(0)).unwrap();
    let anew = store.write(|tx| {
        tx.discard_ceremony(&ID)?;
        tx.begin_ceremony(ID, b"x", Secret::new([8; 32]), 0)
    });
    anew.unwrap();
    assert!(store.ceremony_inputs(&ID).unwrap().is_empty());
    assert_eq!(store.ceremony(&ID).unwrap().unwrap().seed.unwrap().expose(), &[8; 32]);
    store.write(|tx| tx.end_ceremony(&ID, b"certified", &[])).unwrap();
    assert!(matches!(store.write(|tx| tx.discard_ceremony(&ID)), Err(JournalError::Ended)));
    store.write(|tx| tx.forget_ceremony(&ID)).unwrap();
    assert!(matches!(store.write(|tx| tx.discard_ceremony(&ID)), Err(JournalError::Unknown)));
}

#[test]
fn an_epilogue_takes_the_place_of_the_inputs() {
    let disk = SimulatedDisk::default();
    let store = create(&disk);
    store.write(|tx| tx.begin_ceremony(ID, b"x", Secret::new([9; 32]), 0)).unwrap();
    for index in 0..5 {
        store.record_input(ID, index, input(1)).unwrap();
    }
    assert!(matches!(store.write(|tx| tx.forget_epilogue(&ID)), Err(JournalError::Running)));
    store.write(|tx| tx.end_ceremony(&ID, b"certified", &[input(7), input(8)])).unwrap();
    drop(store);
    let store = open(&disk);
    let epilogue = || store.ceremony_inputs(&ID).unwrap().iter().map(|part| part.expose().clone()).collect::<Vec<_>>();
    assert_eq!((epilogue(), store.ceremony(&ID).unwrap().unwrap().inputs()), (vec![vec![7; 3], vec![8; 3]], 2));
    store.write(|tx| tx.forget_epilogue(&ID)).unwrap();
    assert!(epilogue().is_empty());
    assert_eq!(store.ceremony(&ID).unwrap().unwrap().outcome.unwrap(), b"certified");
    store.write(|tx| tx.forget_ceremony(&ID)).unwrap();
    assert!(matches!(store.write(|tx| tx.forget_epilogue(&ID)), Err(JournalError::Unknown)));
}

#[test]
fn the_audit_log_is_one_chain() {
    let disk = SimulatedDisk::default();
    let store = create(&disk);
    for index in 0..20_u8 {
        assert_eq!(store.append_audit(vec![index; 10]).unwrap().index, u64::from(index));
    }
    drop(store);
    let store = open(&disk);
    let last = store.append_audit(b"after reopening".to_vec()).unwrap();
    let chain = store.check_audit().unwrap().unwrap();
    assert_eq!((chain.len(), *chain.head()), (21, last.hash));
    let records = store.audit(5, 3).unwrap();
    assert_eq!(records.iter().map(|record| record.index).collect::<Vec<_>>(), [5, 6, 7]);
    assert!(store.audit(0, 0).unwrap().is_empty());
    assert!(matches!(store.append_audit(vec![0; 70_000]), Err(StoreError::Record { .. })));
}

#[test]
fn a_pruned_log_goes_on_from_where_it_was_cut() {
    let disk = SimulatedDisk::default();
    let store = create(&disk);
    assert_eq!(store.write(|tx| tx.prune_audit(3)).unwrap(), 0);
    for index in 0..20_u8 {
        store.append_audit(vec![index; 10]).unwrap();
    }
    let all = store.audit(0, 100).unwrap();
    let whole = store.check_audit().unwrap().unwrap();
    assert_eq!(store.write(|tx| tx.prune_audit(5)).unwrap(), 5);
    assert_eq!(store.write(|tx| tx.prune_audit(2)).unwrap(), 0);
    drop(store);
    let mut store = open(&disk);
    store.compact().unwrap();
    assert_eq!(store.audit(0, 100).unwrap(), all[5..]);
    assert_eq!(store.check_audit().unwrap(), Ok(whole));
    assert_eq!((store.audit_start().unwrap().len(), *store.audit_start().unwrap().head()), (5, all[4].hash));

    // However much is to be pruned, the last record stays and the next one follows it.
    assert_eq!(store.write(|tx| tx.prune_audit(1_000)).unwrap(), 14);
    assert_eq!(store.append_audit(b"next".to_vec()).unwrap().previous, all[19].hash);
    assert_eq!(store.check_audit().unwrap().unwrap().len(), 21);

    // Records that are missing without having been pruned are noticed.
    assert_ne!(AuditChain::default().check(&store.audit(0, 1).unwrap()[0]), Ok(()));
}

#[test]
fn an_exported_log_that_was_changed_is_found_out() {
    let store = create(&SimulatedDisk::default());
    for index in 0..6_u8 {
        store.append_audit(vec![index]).unwrap();
    }
    let records = store.audit(0, 100).unwrap();
    let check = |records: &[theta_store::AuditRecord]| {
        let mut chain = AuditChain::default();
        records.iter().try_for_each(|record| chain.check(record)).map(|()| *chain.head())
    };
    let head = check(&records).unwrap();
    for place in 0..6 {
        let mut changed = records.clone();
        changed[place].body = b"forged".to_vec();
        assert_eq!(check(&changed).unwrap_err().0, place as u64);
        let mut removed = records.clone();
        removed.remove(place);
        // A log without its end is whole, but its last hash is not the one that was kept elsewhere.
        assert!(check(&removed) != Ok(head));
    }
    let mut swapped = records;
    swapped.swap(2, 3);
    assert_eq!(check(&swapped).unwrap_err().0, 2);
}

/// Ceremonies end under the lock of commits, and leave epilogues for as long as their keys live. What the end of one takes must not grow
/// with what others have left.
#[test]
fn the_end_of_a_ceremony_reads_nothing_of_the_others() {
    let reads = |others: u32| {
        let disk = SimulatedDisk::default();
        let store = create(&disk);
        let id = |number: u32| {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_be_bytes());
            id
        };
        let begun = store.write(|tx| {
            for number in 1..=others {
                tx.begin_ceremony(id(number), b"refresh", Secret::new([1; 32]), 1)?;
                tx.end_ceremony(&id(number), b"done", &[Secret::new(vec![7; 200])])?;
            }
            tx.begin_ceremony(ID, b"refresh", Secret::new([1; 32]), 1)?;
            (0..3).try_for_each(|index| tx.record_input(&ID, index, &input(1)))
        });
        begun.unwrap();
        drop(store);
        let store = open(&disk);
        let before = disk.reads();
        store.write(|tx| tx.end_ceremony(&ID, b"done", &[input(9)])).unwrap();
        let epilogue = store.ceremony_inputs(&ID).unwrap();
        assert_eq!(epilogue.iter().map(Secret::expose).collect::<Vec<_>>(), [&vec![9; 3]]);
        disk.reads() - before
    };
    let (few, many) = (reads(10), reads(2_000));
    assert!(many < few + 40, "{few} reads beside 10 others, {many} beside 2,000");
}
