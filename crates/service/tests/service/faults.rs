//! Strangers, floods, invalid bytes, absent nodes and impatient clients: a node refuses, explains and continues.

use std::{num::NonZeroUsize, time::Duration};

use crate::{
    group::{CIPHER, COIN, Prepared, SIGNER, TestGroup},
    sound::{eventually, works},
};
use bytes::Bytes;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use theta_network::Identity;
use theta_payload::{Aead, Encrypt as _, split_ciphertext};
use theta_wire::v1::{
    self, InstanceState, Wait, statement, threshold_protocol_client::ThresholdProtocolClient,
    threshold_scheme_client::ThresholdSchemeClient,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
    time,
};
use tonic::{Code, Request};

type Protocol = ThresholdProtocolClient;

fn sign_request(message: Bytes, wait: Wait) -> v1::SignRequest {
    v1::SignRequest { key: SIGNER.to_owned(), message, wait: wait.into(), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_refused() {
    let group = TestGroup::new().await;
    let made = Identity::generate("stranger").unwrap();
    let stranger = Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
    let folder = group.folder.path().join("node-2");
    let node = Identity::load(&folder.join("node.crt"), &folder.join("node.key")).unwrap();
    for (who, identity) in [("a stranger", stranger), ("another node", node)] {
        // In TLS 1.3 the client may learn of its refusal only with its first request.
        let asked = async {
            let channel = group.channel_as(1, &identity).await.ok()?;
            Protocol::new(channel).list_keys(v1::ListKeysRequest {}).await.ok()
        };
        assert!(asked.await.is_none(), "{who} was let in");
    }
    works(&group, "after strangers").await;
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_certificate_and_no_tls_are_refused() {
    let group = TestGroup::new().await;
    let address = group.node(1).api_address();
    let mut plain = tokio::net::TcpStream::connect(address).await.unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // The answer is an alert and the end, or a reset; never an HTTP/2 frame.
    let _ = plain.read_to_end(&mut answer).await;
    assert!(answer.len() < 9, "{answer:?}");

    let config = anonymous::config();
    let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(config);
    if let Ok(mut tls) = connector.connect(theta_network::tls::server_name(), tcp).await {
        let mut byte = [0];
        assert!(!matches!(tls.read(&mut byte).await, Ok(1..)), "the server spoke to a client without a certificate");
    }
    works(&group, "after the anonymous").await;
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_refused_and_passes() {
    const PLACES: usize = 4;
    let bound = |_, config: &mut theta_service::NodeConfig| {
        config.limits.max_in_flight = NonZeroUsize::new(PLACES).unwrap();
        config.limits.max_in_flight_bytes = NonZeroUsize::new(100_000).unwrap();
        config.limits.reserved_requests = 0;
        config.limits.reserved_bytes = 0;
    };
    let group = Prepared::new(2, 4).start(bound, |_, node| node).await;
    let client = Protocol::new(group.channel(1).await);

    let mut large = client.clone();
    let error = large.sign(sign_request(vec![0; 200_000].into(), Wait::Started)).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");

    // Only node 1 receives these, so those that it accepts wait for shares that never come.
    let mut flood = JoinSet::new();
    for i in 0..40_u32 {
        let mut client = client.clone();
        let request = sign_request(i.to_be_bytes().to_vec().into(), Wait::Done);
        flood.spawn(async move { client.sign(request).await });
    }
    for _ in 0..40 - PLACES {
        let error = flood.join_next().await.unwrap().unwrap().unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert!(error.message().contains("try again"), "{}", error.message());
    }
    flood.shutdown().await;
    eventually("places come back when callers go", async || {
        client.clone().list_keys(v1::ListKeysRequest {}).await.is_ok()
    })
    .await;
    works(&group, "after the flood").await;
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_large_a_message_is_refused() {
    let bound = |_, config: &mut theta_service::NodeConfig| {
        config.limits.max_message_bytes = NonZeroUsize::new(10_000).unwrap();
    };
    let group = Prepared::new(2, 4).start(bound, |_, node| node).await;
    let mut client = Protocol::new(group.channel(1).await);
    let error = client.sign(sign_request(vec![0; 20_000].into(), Wait::Started)).await.unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange, "{error}");
    works(&group, "after too large a message").await;
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_without_enough_nodes() {
    let mut group = TestGroup::new().await;
    let mut client = Protocol::new(group.channel(1).await);
    for id in 2..=4 {
        group.kill(id);
    }
    let mut request = Request::new(sign_request("alone".into(), Wait::Done));
    request.set_timeout(Duration::from_secs(3));
    let error = client.sign(request).await.unwrap_err();
    // On a busy machine the transport's deadline may be first.
    assert!([Code::DeadlineExceeded, Code::Cancelled].contains(&error.code()), "{error}");
    client.list_keys(v1::ListKeysRequest {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_leaves_the_instance() {
    let group = TestGroup::new().await;
    let mut client = Protocol::new(group.channel(1).await);
    let id = client.sign(sign_request("gone".into(), Wait::Started)).await.unwrap().into_inner().instance_id;
    let mut impatient = client.clone();
    let waiting = tokio::spawn(async move { impatient.sign(sign_request("gone".into(), Wait::Done)).await });
    time::sleep(Duration::from_millis(50)).await;
    waiting.abort();

    let mut other = Protocol::new(group.channel(2).await);
    other.sign(sign_request("gone".into(), Wait::Done)).await.unwrap();
    eventually("the instance ends without its caller", async || {
        let request = v1::GetResultRequest { instance_id: id.clone() };
        client.get_result(request).await.unwrap().into_inner().state() == InstanceState::Finished
    })
    .await;
    group.shutdown().await;
}

/// Random bytes of many lengths, and valid ones with a byte changed, cut short or extended.
fn bad_bytes(valid: &[u8], rng: &mut ChaCha20Rng) -> Vec<Bytes> {
    let mut all = vec![Bytes::new()];
    for len in [1, 31, 32, 33, 48, 96, 300, 5000] {
        let mut random = vec![0; len];
        rng.fill_bytes(&mut random);
        all.push(random.into());
    }
    for _ in 0..24 {
        let mut changed = valid.to_vec();
        let position = usize::try_from(rng.next_u32()).unwrap() % changed.len().max(1);
        if let Some(byte) = changed.get_mut(position) {
            *byte ^= 1 << (rng.next_u32() % 8);
        }
        all.push(changed.into());
        all.push(Bytes::copy_from_slice(&valid[..position.min(valid.len())]));
    }
    let mut longer = valid.to_vec();
    longer.push(0);
    all.push(longer.into());
    all
}

/// The answer's code blames the caller.
fn blamed<T>(answer: Result<T, tonic::Status>) {
    let Err(status) = answer else { panic!("it was taken") };
    assert!(matches!(status.code(), Code::InvalidArgument | Code::NotFound), "{status}");
    assert!(!status.message().is_empty() && !status.message().contains('\n'), "{status}");
}

/// The answer blames the caller, or is right, where a change does not touch what the node checks.
fn blamed_or_taken<T>(answer: Result<T, tonic::Status>) {
    if answer.is_err() {
        blamed(answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_bytes_in_the_protocol_api() {
    let group = TestGroup::new().await;
    let mut client = Protocol::new(group.channel(1).await);
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let ciphertext = group.public(CIPHER).encrypt(b"secret", b"", Aead::default(), &mut rng).unwrap();
    let (header, _) = split_ciphertext(&ciphertext).unwrap();
    let wait = Wait::Started.into();
    for bytes in bad_bytes(&ciphertext, &mut rng) {
        let key = CIPHER.to_owned();
        let asked = v1::DecapsulateRequest { key: key.clone(), header: bytes.clone(), wait, ..Default::default() };
        // Bytes behind the header, or missing at its end, make it another header.
        assert_ne!(bytes, header);
        blamed(client.decapsulate(asked).await);
        // A node opens the payload only when there are k shares, so only the decrypting caller sees a change of it.
        blamed_or_taken(
            client.decrypt(v1::DecryptRequest { key, ciphertext: bytes.clone(), wait, ..Default::default() }).await,
        );
        blamed(client.get_result(v1::GetResultRequest { instance_id: bytes.clone() }).await);
        blamed(client.watch_instance(v1::WatchInstanceRequest { instance_id: bytes.clone() }).await);
        // Any bytes are a valid message or name of a coin, but not for a key of another purpose.
        client
            .sign(v1::SignRequest { key: SIGNER.to_owned(), message: bytes.clone(), wait, ..Default::default() })
            .await
            .unwrap();
        client
            .flip_coin(v1::FlipCoinRequest { key: COIN.to_owned(), name: bytes.clone(), wait, ..Default::default() })
            .await
            .unwrap();
        let crossed =
            client.sign(v1::SignRequest { key: CIPHER.to_owned(), message: bytes, wait, ..Default::default() }).await;
        assert_eq!(crossed.unwrap_err().code(), Code::InvalidArgument);
    }
    for key in ["", "absent", "UPPER", "a/../b", "\u{0}", &"x".repeat(100_000)] {
        let key = key.to_owned();
        blamed(
            client.sign(v1::SignRequest { key: key.clone(), message: Bytes::new(), wait, ..Default::default() }).await,
        );
        blamed(client.get_public_key(v1::GetPublicKeyRequest { key }).await);
    }
    let odd = v1::SignRequest { key: SIGNER.to_owned(), message: Bytes::new(), wait: 77, ..Default::default() };
    assert_eq!(client.sign(odd).await.unwrap_err().code(), Code::InvalidArgument);
    works(&group, "after bad bytes").await;
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_bytes_in_the_scheme_api() {
    let group = TestGroup::new().await;
    let mut client = ThresholdSchemeClient::new(group.channel(1).await);
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let ciphertext = group.public(CIPHER).encrypt(b"secret", b"", Aead::default(), &mut rng).unwrap();
    let wrap = |statement| Some(v1::Statement { statement: Some(statement) });
    let message = || wrap(statement::Statement::Message("message".into()));
    let coin = || wrap(statement::Statement::CoinName("coin".into()));
    for (name, good) in [(SIGNER, message()), (COIN, coin())] {
        let key = name.to_owned();
        let create = v1::CreateShareRequest { key: key.clone(), statement: good.clone(), ..Default::default() };
        let share = client.create_share(create).await.unwrap().into_inner().share;
        for bytes in bad_bytes(&share, &mut rng) {
            let (key, statement) = (key.clone(), good.clone());
            let check = v1::VerifyShareRequest {
                key: key.clone(),
                statement: statement.clone(),
                node: 1,
                share: bytes.clone(),
            };
            match client.verify_share(check).await {
                Ok(answer) => assert!(!answer.into_inner().valid),
                other => blamed(other),
            }
            let shares = vec![
                v1::IndexedShare { node: 1, share: bytes.clone() },
                v1::IndexedShare { node: 2, share: share.clone() },
            ];
            blamed(client.combine(v1::CombineRequest { key: key.clone(), statement, shares }).await);
            let verify = v1::VerifyRequest { key, message: bytes.clone(), result: bytes.clone(), proof: bytes };
            match client.verify(verify).await {
                Ok(answer) => assert!(!answer.into_inner().valid),
                other => blamed(other),
            }
        }
    }
    for bytes in bad_bytes(&ciphertext, &mut rng) {
        let (key, header) = (CIPHER.to_owned(), wrap(statement::Statement::CiphertextHeader(bytes.clone())));
        let check = v1::VerifyCiphertextRequest { key: key.clone(), ciphertext: bytes.clone() };
        assert!(!client.verify_ciphertext(check).await.unwrap().into_inner().valid);
        blamed(
            client
                .create_share(v1::CreateShareRequest { key: key.clone(), statement: header, ..Default::default() })
                .await,
        );
        let label = v1::EncryptRequest { key, label: bytes, ..Default::default() };
        client.encrypt(label).await.unwrap();
    }
    for node in [0, 5, 65_536, u32::MAX] {
        let check = v1::VerifyShareRequest {
            key: SIGNER.to_owned(),
            statement: message(),
            node,
            share: Bytes::from_static(&[1; 96]),
        };
        match client.verify_share(check).await {
            Ok(answer) => assert!(!answer.into_inner().valid),
            other => blamed(other),
        }
    }
    let nothing = v1::CreateShareRequest { key: SIGNER.to_owned(), statement: None, ..Default::default() };
    assert_eq!(client.create_share(nothing).await.unwrap_err().code(), Code::InvalidArgument);
    works(&group, "after bad bytes").await;
    group.shutdown().await;
}

/// A TLS client that accepts every server and shows no certificate.
mod anonymous {
    use std::sync::Arc;

    use rustls::{
        ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, UnixTime},
    };

    #[derive(Debug)]
    struct Credulous;

    pub(super) fn config() -> Arc<ClientConfig> {
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Credulous))
            .with_no_client_auth();
        Arc::new(config)
    }

    impl ServerCertVerifier for Credulous {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }
        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }
        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
        }
    }
}
