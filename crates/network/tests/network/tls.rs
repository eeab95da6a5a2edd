//! Pinned TLS: which certificates are accepted, and which are not.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustls::{
    ClientConfig, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::{CertifiedKey, SingleCertAndKey},
};
use theta_names::NodeId;
use theta_network::{
    Fingerprint, GeneratedIdentity, Identity,
    tls::{self, Pinned, Pins, UnpinnedCertificate},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const ALPN: &[&[u8]] = &[b"test/1"];

struct Member {
    made: GeneratedIdentity,
    identity: Identity,
}

fn member() -> Member {
    let made = Identity::generate("member").unwrap();
    let identity = Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
    Member { made, identity }
}

fn client_pin(certificate: Fingerprint) -> Pins {
    [(certificate, Pinned::Client(Arc::from("alice")))].into_iter().collect()
}

/// Lets both sides shake hands and exchange a byte; returns what each saw.
async fn meet(
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
) -> (io::Result<Option<Fingerprint>>, io::Result<u8>) {
    let (near, far) = duplex(64 * 1024);
    let serving = async {
        let mut stream = TlsAcceptor::from(server).accept(near).await?;
        stream.write_all(&[7]).await?;
        stream.shutdown().await?;
        Ok(tls::peer_fingerprint(stream.get_ref().1))
    };
    let asking = async {
        let mut stream = TlsConnector::from(client).connect(tls::server_name(), far).await?;
        stream.read_u8().await
    };
    tokio::join!(serving, asking)
}

#[tokio::test]
async fn pinned_members_meet_and_know_each_other() {
    let (server, client) = (member(), member());
    let pins = client_pin(client.identity.fingerprint());
    let server_side = tls::server_config(&server.identity, pins.clone(), ALPN).unwrap();
    let client_side = tls::client_config(&client.identity, server.identity.fingerprint(), ALPN).unwrap();
    let (seen, received) = meet(server_side, client_side).await;
    assert_eq!(received.unwrap(), 7);
    let who = seen.unwrap().unwrap();
    assert_eq!(pins.owner(&who), Some(&Pinned::Client(Arc::from("alice"))));
}

#[tokio::test]
async fn another_certificate_is_refused_on_either_side() {
    let (server, client, other) = (member(), member(), member());
    let wrong_pins = tls::server_config(&server.identity, client_pin(other.identity.fingerprint()), ALPN).unwrap();
    let right = tls::client_config(&client.identity, server.identity.fingerprint(), ALPN).unwrap();
    let (seen, received) = meet(wrong_pins, right).await;
    let refusal = UnpinnedCertificate::cause(&seen.unwrap_err()).unwrap();
    assert_eq!(refusal, UnpinnedCertificate { shown: client.identity.fingerprint(), expected: None });
    assert!(received.is_err());

    let pins = tls::server_config(&server.identity, client_pin(client.identity.fingerprint()), ALPN).unwrap();
    let wrong = tls::client_config(&client.identity, other.identity.fingerprint(), ALPN).unwrap();
    let (seen, received) = meet(pins, wrong).await;
    let refusal = UnpinnedCertificate::cause(&received.unwrap_err()).unwrap();
    let expected = Some(other.identity.fingerprint());
    assert_eq!(refusal, UnpinnedCertificate { shown: server.identity.fingerprint(), expected });
    assert!(seen.is_err());
}

/// Shows the victim's certificate but signs with its own key.
fn thief(victim: &Member, thief: &Member) -> Arc<SingleCertAndKey> {
    let certificate = CertificateDer::from_pem_slice(victim.made.certificate_pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(thief.made.key_pem.as_bytes()).unwrap();
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key).unwrap();
    Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![certificate], key)))
}

fn tls_error(error: &io::Error) -> &rustls::Error {
    error.get_ref().and_then(|inner| inner.downcast_ref()).unwrap_or_else(|| panic!("not an error of TLS: {error}"))
}

fn is_bad_signature(error: &io::Error) -> bool {
    *tls_error(error) == rustls::Error::InvalidCertificate(rustls::CertificateError::BadSignature)
}

#[tokio::test]
async fn a_copied_certificate_without_its_key_is_refused_on_either_side() {
    let (server, client, other) = (member(), member(), member());
    let pins = client_pin(client.identity.fingerprint());
    let honest_server = tls::server_config(&server.identity, pins, ALPN).unwrap();
    let honest_client = tls::client_config(&client.identity, server.identity.fingerprint(), ALPN).unwrap();

    let mut false_client = ClientConfig::clone(&honest_client);
    false_client.client_auth_cert_resolver = thief(&client, &other);
    let (seen, _) = meet(Arc::clone(&honest_server), Arc::new(false_client)).await;
    assert!(is_bad_signature(&seen.unwrap_err()));

    let mut false_server = ServerConfig::clone(&honest_server);
    false_server.cert_resolver = thief(&server, &other);
    let (_, received) = meet(Arc::new(false_server), honest_client).await;
    assert!(is_bad_signature(&received.unwrap_err()));
}

#[tokio::test]
async fn no_certificate_tls_12_and_other_protocols_are_refused() {
    let (server, client) = (member(), member());
    let pins = client_pin(client.identity.fingerprint());
    let server_side = tls::server_config(&server.identity, pins, ALPN).unwrap();
    let client_side = tls::client_config(&client.identity, server.identity.fingerprint(), ALPN).unwrap();

    let mut anonymous = ClientConfig::clone(&client_side);
    anonymous.client_auth_cert_resolver = Arc::new(NoCertificate);
    let (seen, _) = meet(Arc::clone(&server_side), Arc::new(anonymous)).await;
    assert_eq!(tls_error(&seen.unwrap_err()), &rustls::Error::NoCertificatesPresented);

    let other_protocol = tls::client_config(&client.identity, server.identity.fingerprint(), &[b"h2"]).unwrap();
    let (seen, _) = meet(Arc::clone(&server_side), other_protocol).await;
    assert_eq!(tls_error(&seen.unwrap_err()), &rustls::Error::NoApplicationProtocol);

    let old = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let (seen, _) = meet(server_side, Arc::new(old)).await;
    let seen = seen.unwrap_err();
    assert!(matches!(tls_error(&seen), rustls::Error::PeerIncompatible(_)), "{seen}");
}

#[derive(Debug)]
struct NoCertificate;

impl rustls::client::ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[test]
fn pins_tell_nodes_from_clients() {
    let (node, client) = (Fingerprint::from([1; 32]), Fingerprint::from([2; 32]));
    let id = NodeId::try_from(3).unwrap();
    let pins: Pins = [(node, Pinned::Node(id)), (client, Pinned::Client(Arc::from("alice")))].into_iter().collect();
    assert_eq!(pins.owner(&node).unwrap().to_string(), "node 3");
    assert_eq!(pins.owner(&client).unwrap().to_string(), "client alice");
    assert_eq!(pins.owner(&Fingerprint::from([3; 32])), None);
}

/// Admits one certificate, and clients without one, as long as it is told to.
#[derive(Debug)]
struct Door {
    guest: Fingerprint,
    open: AtomicBool,
}

impl tls::Admits for Door {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        *certificate == self.guest && self.open.load(Ordering::Relaxed)
    }
    fn admits_anonymous(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn whom_a_server_admits_may_change_while_it_runs() {
    let (server, client) = (member(), member());
    let door = Arc::new(Door { guest: client.identity.fingerprint(), open: AtomicBool::new(true) });
    let server_side =
        tls::server_config_admitting(&server.identity, Arc::clone(&door) as Arc<dyn tls::Admits>, ALPN).unwrap();
    let known = tls::client_config(&client.identity, server.identity.fingerprint(), ALPN).unwrap();
    let anonymous = tls::anonymous_client_config(server.identity.fingerprint(), ALPN).unwrap();
    for open in [true, false, true] {
        door.open.store(open, Ordering::Relaxed);
        let (seen, received) = meet(Arc::clone(&server_side), Arc::clone(&known)).await;
        assert_eq!((seen.ok().flatten().is_some(), received.is_ok()), (open, open));
        let (seen, received) = meet(Arc::clone(&server_side), Arc::clone(&anonymous)).await;
        assert_eq!((matches!(seen, Ok(None)), received.is_ok()), (open, open));
    }
    // A client without a certificate still insists on the server's.
    let wrong = tls::anonymous_client_config(client.identity.fingerprint(), ALPN).unwrap();
    let (_, received) = meet(server_side, wrong).await;
    assert!(UnpinnedCertificate::cause(&received.unwrap_err()).is_some());
}
