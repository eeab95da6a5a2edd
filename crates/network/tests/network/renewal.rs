//! New certificates of keys that are pinned already.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{ClientConfig, ServerConfig};
use tempfile::TempDir;
use theta_names::NodeId;
use theta_network::{
    Identity, IdentityError, Period, Subject,
    tls::{self, Pinned, Pins},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const DAY: u64 = 86_400;
/// Some time in 2026.
const THEN: u64 = 1_795_388_400;

struct Files {
    dir: TempDir,
    identity: Identity,
}

impl Files {
    /// A node's identity, made then.
    fn made() -> Self {
        let made = Identity::generate_for_a_year(&subject(), THEN).unwrap();
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("node.crt"), &made.certificate_pem).unwrap();
        fs::write(dir.path().join("node.key"), made.key_pem.as_bytes()).unwrap();
        fs::set_permissions(dir.path().join("node.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let identity = Identity::load(&dir.path().join("node.crt"), &dir.path().join("node.key")).unwrap();
        assert_eq!(identity.fingerprint(), made.fingerprint);
        Self { dir, identity }
    }

    fn certificate(&self) -> PathBuf {
        self.dir.path().join("node.crt")
    }

    fn key(&self) -> PathBuf {
        self.dir.path().join("node.key")
    }

    fn renew(&self, now: u64) -> Result<(), IdentityError> {
        self.identity.renew(&self.certificate(), &self.key(), &subject(), now)
    }

    fn loaded(&self) -> Identity {
        Identity::load(&self.certificate(), &self.key()).unwrap()
    }
}

fn subject() -> Subject {
    Subject::new("node 1").unwrap().at("theta.example").at("192.0.2.1")
}

#[test]
fn a_certificate_lasts_a_year_and_is_renewed_before_anybody_is_warned() {
    let files = Files::made();
    let node = &files.identity;
    assert_eq!(node.period(), Some(Period { from: THEN - DAY, until: THEN + 365 * DAY }));
    let due: Vec<bool> = [0, 304, 305, 306, 365, 400].map(|days| node.is_due(THEN + days * DAY)).into();
    assert_eq!(due, [false, false, false, true, true, true]);
    assert!(node.is_due(THEN - 2 * DAY), "made while the clock was ahead");
    let warned = [0, 330, 336, 365, 366].map(|days| node.days_to_warn_of(THEN + days * DAY));
    assert_eq!(warned, [None, None, Some(29), Some(0), Some(-1)]);
}

#[test]
fn a_renewed_certificate_has_the_same_key_and_another_end() {
    let files = Files::made();
    let old = fs::read(files.certificate()).unwrap();
    files.renew(THEN + 310 * DAY).unwrap();
    let end = Some(Period { from: THEN + 309 * DAY, until: THEN + 675 * DAY });
    assert_eq!((files.identity.period(), files.loaded().period()), (end, end));
    assert_eq!(files.loaded().fingerprint(), files.identity.fingerprint());
    assert_ne!(fs::read(files.certificate()).unwrap(), old);
    let left: Vec<_> = fs::read_dir(files.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_wrong_clock_takes_no_good_day_away() {
    // Booted in 1970, and set right later; or years ahead, and set back.
    for wrong in [DAY, THEN + 4_000 * DAY] {
        let files = Files::made();
        files.renew(wrong).unwrap();
        let period = files.loaded().period().unwrap();
        for now in [wrong, THEN, THEN + 364 * DAY] {
            assert!((period.from..=period.until).contains(&now), "{period:?} {now}");
        }
    }
}

#[test]
fn what_cannot_be_renewed_stays() {
    let files = Files::made();
    let (old, period) = (fs::read(files.certificate()).unwrap(), files.identity.period());
    let other = Files::made();
    let mismatch = files.identity.renew(&files.certificate(), &other.key(), &subject(), THEN);
    assert!(matches!(mismatch, Err(IdentityError::Mismatch { .. })), "{mismatch:?}");
    let nowhere = files.dir.path().join("none/node.crt");
    let unwritten = files.identity.renew(&nowhere, &files.key(), &subject(), THEN);
    assert!(matches!(unwritten, Err(IdentityError::Write { .. })), "{unwritten:?}");
    let keyless = files.identity.renew(&files.certificate(), Path::new("/none"), &subject(), THEN);
    assert!(matches!(keyless, Err(IdentityError::Read { .. })), "{keyless:?}");
    assert_eq!((fs::read(files.certificate()).unwrap(), files.identity.period()), (old, period));
}

#[test]
fn clients_certificates_are_not_renewed() {
    let made = Identity::generate("alice").unwrap();
    let client = Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
    // 2020-01-01 and 2120-01-01.
    assert_eq!(client.period(), Some(Period { from: 1_577_836_800, until: 4_733_510_400 }));
    assert!(!client.is_due(THEN));
}

#[test]
fn dates_that_no_calendar_has_are_the_last_ones() {
    let made = Identity::generate_for_a_year(&subject(), u64::MAX).unwrap();
    let node = Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
    assert_eq!(node.period().unwrap().until, 253_402_300_799);
}

/// Whether the two let each other in.
async fn meet(server: Arc<ServerConfig>, client: Arc<ClientConfig>) -> bool {
    let (near, far) = duplex(64 * 1024);
    let serving = async {
        let mut stream = TlsAcceptor::from(server).accept(near).await.ok()?;
        stream.write_all(&[7]).await.ok()?;
        stream.shutdown().await.ok()
    };
    let asking = async {
        let mut stream = TlsConnector::from(client).connect(tls::server_name(), far).await.ok()?;
        stream.read_u8().await.ok()
    };
    let (served, received) = tokio::join!(serving, asking);
    served.is_some() && received == Some(7)
}

#[tokio::test]
async fn old_pins_hold_for_renewed_and_for_ended_certificates() {
    let (server, client) = (Files::made(), Files::made());
    let node = Pinned::Node(NodeId::try_from(2).unwrap());
    let pins: Pins = [(client.identity.fingerprint(), node)].into_iter().collect();
    let server_side = tls::server_config(&server.identity, pins, &[]).unwrap();
    let client_side = tls::client_config(&client.identity, server.identity.fingerprint(), &[]).unwrap();
    assert!(meet(Arc::clone(&server_side), Arc::clone(&client_side)).await);
    // Both in configurations that stand, as in a node that runs; the second pair ended in 1971.
    for now in [THEN + 310 * DAY, 400 * DAY] {
        server.renew(now).unwrap();
        client.renew(now).unwrap();
        assert!(meet(Arc::clone(&server_side), Arc::clone(&client_side)).await, "{now}");
    }
    let stranger = Files::made();
    let strange = tls::client_config(&stranger.identity, server.identity.fingerprint(), &[]).unwrap();
    assert!(!meet(server_side, strange).await);
}
