//! Key folders, good and bad.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use theta_custody::KeyTable;
use theta_groups::Secret;
use theta_orchestration::load_keys;
use theta_schemes::{Suite, keys::import_any};
use theta_sharing::Threshold;

use crate::group::{Key, rng};

fn deal(suite: Suite) -> Key {
    Key::deal(suite, Threshold::new(2, 3).unwrap())
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

/// Writes both files of a key as the dealer does; returns their paths.
fn store(directory: &TempDir, key: &Key, node: u16) -> (PathBuf, PathBuf) {
    let folder = directory.path().join("keys");
    fs::create_dir_all(&folder).unwrap();
    let paths = (folder.join(format!("{}.pub", key.name)), folder.join(format!("{}.share", key.name)));
    write(&paths.0, &key.public.to_text(&key.name), 0o644);
    write(&paths.1, key.share_text(node), 0o600);
    paths
}

/// The one line that refuses a folder; it must name the file.
fn refusal(directory: &TempDir, path: &Path) -> String {
    let text = load_keys(directory.path()).unwrap_err().to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn a_good_folder_is_loaded() {
    let directory = tempfile::tempdir().unwrap();
    assert!(load_keys(directory.path()).unwrap().is_empty());
    // The tests' RSA keys are of a size that no key file may have: those of the right size take long to find.
    let suites: Vec<Suite> = Suite::ALL.into_iter().filter(|suite| suite.group() != "RSA").collect();
    for suite in &suites {
        store(&directory, &deal(*suite), 3);
    }
    fs::write(directory.path().join("keys/README"), "not a key").unwrap();
    let keys = load_keys(directory.path()).unwrap();
    assert_eq!(keys.len(), suites.len());
    assert_eq!(keys.local().unwrap().get(), 3);
    let mut names: Vec<&str> = suites.iter().map(|suite| suite.name()).collect();
    names.sort_unstable();
    assert!(keys.iter().map(|entry| entry.name.to_string()).eq(names));
    for entry in keys.iter() {
        assert_eq!(keys.get(entry.name.as_str()).unwrap().key_id, entry.key_id);
        assert_eq!(keys.get_by_id(&entry.key_id).unwrap().name, entry.name);
    }
    assert!(keys.get("nothing").is_none());
}

#[cfg(unix)]
#[test]
fn a_share_that_others_can_read_is_refused() {
    for mode in [0o604, 0o640, 0o660, 0o644, 0o610] {
        let directory = tempfile::tempdir().unwrap();
        let key = deal(Suite::Sg02Ristretto255);
        let (_, share) = store(&directory, &key, 1);
        write(&share, key.share_text(1), mode);
        let text = refusal(&directory, &share);
        let path = share.display();
        assert_eq!(text, format!("{path}: mode {mode:o} lets others read this secret share: run `chmod 600 {path}`"));
    }
}

#[test]
fn halves_of_pairs_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (public, share) = store(&directory, &deal(Suite::Sg02Ristretto255), 1);
    fs::remove_file(&share).unwrap();
    assert!(refusal(&directory, &public).starts_with(share.to_str().unwrap()));
    let (_, share) = store(&directory, &deal(Suite::Sg02Ristretto255), 1);
    fs::remove_file(&public).unwrap();
    assert!(refusal(&directory, &share).starts_with(public.to_str().unwrap()));
}

#[test]
fn shares_of_other_keys_and_nodes_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (key, other) = (deal(Suite::Bls04MinPk), deal(Suite::Bls04MinPk));
    let (_, share) = store(&directory, &key, 1);
    write(&share, other.share_text(1), 0o600);
    assert!(refusal(&directory, &share).contains("pair the files of one key"));

    let directory = tempfile::tempdir().unwrap();
    store(&directory, &key, 1);
    store(&directory, &deal(Suite::Cks05Ristretto255), 2);
    let text = load_keys(directory.path()).unwrap_err().to_string();
    let expected = "key cks05-ristretto255 has the share of node 2, key bls04-bls12381-min-pk that of node 1: \
                    a node holds its own shares only";
    assert_eq!(text, expected);
}

#[test]
fn files_named_otherwise_than_their_key_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (public, share) = store(&directory, &deal(Suite::Cks05Bls12381), 2);
    let folder = public.parent().unwrap();
    fs::rename(&public, folder.join("mine.pub")).unwrap();
    fs::rename(&share, folder.join("mine.share")).unwrap();
    let text = refusal(&directory, &folder.join("mine.pub"));
    assert!(text.ends_with("holds key cks05-bls12381: rename it to cks05-bls12381.pub"), "{text}");
    fs::rename(folder.join("mine.pub"), folder.join("My Key.pub")).unwrap();
    fs::rename(folder.join("mine.share"), folder.join("My Key.share")).unwrap();
    assert!(refusal(&directory, &folder.join("My Key.pub")).contains("is not a key name"));
}

#[test]
fn damaged_files_are_refused_and_secrets_are_not_shown() {
    let key = deal(Suite::Sg02Bls12381);
    let text = key.share_text(1).to_owned();
    let digits = text.lines().find_map(|line| line.strip_prefix("secret = \"")).unwrap().trim_end_matches('"');
    for (from, to) in [(digits, &digits[2..]), ("secret", "secert"), ("suite", "sweet"), ("\"", "'''")] {
        let directory = tempfile::tempdir().unwrap();
        let (_, share) = store(&directory, &key, 1);
        write(&share, &text.replacen(from, to, 1), 0o600);
        let refused = refusal(&directory, &share);
        assert!(!refused.contains(&digits[2..10]), "{refused}");
    }
    let directory = tempfile::tempdir().unwrap();
    let (public, share) = store(&directory, &key, 1);
    write(&public, "this is not a key", 0o644);
    refusal(&directory, &public);
    store(&directory, &key, 1);
    write(&share, "\u{0}\u{1}", 0o600);
    refusal(&directory, &share);
    fs::write(&share, [0xff, 0xfe]).unwrap();
    refusal(&directory, &share);
    fs::File::create(&public).unwrap().set_len(1 << 30).unwrap();
    assert!(refusal(&directory, &public).contains("larger than"));
}

#[test]
fn one_key_under_two_names_is_refused() {
    let (first, other) = (deal(Suite::Cks05Ristretto255), deal(Suite::Sg02Ristretto255));
    let entry = |name: &str, key: &Key| (name.parse().unwrap(), key.public.clone(), key.share(1));
    let text = |keys: Vec<_>| KeyTable::new(keys).unwrap_err().to_string();
    assert_eq!(text(vec![entry("a", &first), entry("b", &first)]), "keys a and b are the same key: remove one of them");
    assert_eq!(text(vec![entry("a", &first), entry("a", &other)]), "two keys are named a: rename one of them");
    let mixed = vec![("c".parse().unwrap(), first.public, other.share(1))];
    assert!(text(mixed).starts_with("key c: the share does not belong to the public key"));
}

#[test]
fn one_secret_for_two_purposes_is_refused() {
    let threshold = Threshold::new(2, 3).unwrap();
    let secret = Secret::new(hex::decode("05".repeat(32)).unwrap());
    let key = |name: &str, suite| {
        let (public, mut shares) = import_any(suite, threshold, &secret, &mut rng()).unwrap();
        (name.parse().unwrap(), public, shares.remove(0))
    };
    let text = |keys: Vec<_>| KeyTable::new(keys).unwrap_err().to_string();
    let refused = text(vec![key("lottery", Suite::Cks05Ed25519), key("release", Suite::FrostEd25519)]);
    assert!(refused.starts_with("keys lottery and release are one secret for two purposes"), "{refused}");
    let same = vec![key("plain", Suite::FrostSecp256k1), key("taproot", Suite::FrostSecp256k1Tr)];
    assert_eq!(KeyTable::new(same).unwrap().len(), 2, "two kinds of signatures are one purpose");
}
