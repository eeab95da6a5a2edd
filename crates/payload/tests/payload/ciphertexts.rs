//! Ciphertexts as files: the whole ones open, all others are refused.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use theta_payload::{
    Aead, CHUNK_LEN, Encrypt, Header, OpenError, PayloadKey, TAG_LEN, encrypt_stream, open_bytes, open_stream,
    read_header, seal_stream, sealed_len, split_ciphertext,
};
use theta_schemes::{MAX_LABEL_LEN, RequestError, Statement, Suite};

use crate::fixture::{decapsulate, key, rng};

fn plaintext(len: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from(i % 251).unwrap()).collect()
}

#[test]
fn every_size_opens_with_every_suite_and_aead() {
    for suite in [Suite::Sg02Ristretto255, Suite::Sg02Bls12381, Suite::Bz03Bls12381, Suite::Bz03Bn254] {
        let (public, keys) = key(suite, 2, 3, 1);
        for aead in [Aead::ChaCha20Poly1305, Aead::Aes256Gcm] {
            for len in [0, 1, CHUNK_LEN - 1, CHUNK_LEN, CHUNK_LEN + 1, 2 * CHUNK_LEN, 3 * CHUNK_LEN + 5] {
                let plaintext = plaintext(len);
                let ciphertext = public.encrypt(&plaintext, b"label", aead, &mut rng(2)).unwrap();
                let (header, payload) = split_ciphertext(&ciphertext).unwrap();
                let parsed = Header::parse(header).unwrap();
                assert_eq!((parsed.aead(), parsed.label().bytes(), parsed.suite()), (aead, &b"label"[..], suite));
                assert_eq!(parsed.payload().plaintext_len(), len as u64);
                assert_eq!(sealed_len(len as u64), payload.len() as u64);
                assert_eq!(blake3::hash(payload), *parsed.payload().hash());
                let payload_key = decapsulate(&public, &keys, &ciphertext);
                assert_eq!(open_bytes(&payload_key, &ciphertext).unwrap().expose(), &plaintext);
            }
        }
    }
}

/// A ciphertext of four chunks, its payload key and where its payload begins.
fn four_chunks() -> (Vec<u8>, PayloadKey, usize) {
    let (public, keys) = key(Suite::Sg02Ristretto255, 2, 3, 4);
    let ciphertext = public.encrypt(&plaintext(3 * CHUNK_LEN + 9), b"label", Aead::default(), &mut rng(5)).unwrap();
    let payload_key = decapsulate(&public, &keys, &ciphertext);
    let start = split_ciphertext(&ciphertext).unwrap().0.len();
    (ciphertext, payload_key, start)
}

#[test]
fn a_payload_that_was_cut_moved_or_changed_does_not_open() {
    const SEALED: usize = CHUNK_LEN + TAG_LEN;
    let (good, key, start) = four_chunks();
    open_bytes(&key, &good).unwrap();

    for keep in [0, 1, SEALED - 1, SEALED, 2 * SEALED, 3 * SEALED, 3 * SEALED + 8, 3 * SEALED + 24] {
        let cut = open_bytes(&key, &good[..start + keep]);
        assert!(matches!(cut, Err(OpenError::Truncated { chunks: 4, .. })), "{keep}: {cut:?}");
    }
    let longer = [&good[..], &[0]].concat();
    assert!(matches!(open_bytes(&key, &longer), Err(OpenError::TrailingBytes)));
    let doubled = [&good[..], &good[start..]].concat();
    assert!(matches!(open_bytes(&key, &doubled), Err(OpenError::TrailingBytes)));

    let chunk = |i: usize| start + i * SEALED..start + (i + 1) * SEALED;
    let mut swapped = good.clone();
    swapped[chunk(0)].copy_from_slice(&good[chunk(1)]);
    swapped[chunk(1)].copy_from_slice(&good[chunk(0)]);
    assert!(matches!(open_bytes(&key, &swapped), Err(OpenError::NotAuthentic { chunk: 1, chunks: 4 })));
    let mut repeated = good.clone();
    repeated[chunk(1)].copy_from_slice(&good[chunk(0)]);
    assert!(matches!(open_bytes(&key, &repeated), Err(OpenError::NotAuthentic { chunk: 2, chunks: 4 })));

    for position in (start..good.len()).step_by(4999).chain([good.len() - 1]) {
        let mut flipped = good.clone();
        flipped[position] ^= 0x10;
        assert!(matches!(open_bytes(&key, &flipped), Err(OpenError::NotAuthentic { .. })), "{position}");
    }
    let stranger = PayloadKey::from_bytes(&[1; 32]).unwrap();
    assert!(matches!(open_bytes(&stranger, &good), Err(OpenError::NotAuthentic { chunk: 1, .. })));
}

/// Chunks are hashed sixteen at a time, which must not change any result.
#[test]
fn sixteen_chunks_are_as_good_as_any() {
    const SEALED: usize = CHUNK_LEN + TAG_LEN;
    let (public, keys) = key(Suite::Sg02Ristretto255, 1, 1, 15);
    for (len, chunks) in
        [(16 * CHUNK_LEN - 1, 16), (16 * CHUNK_LEN, 16), (16 * CHUNK_LEN + 1, 17), (33 * CHUNK_LEN, 33)]
    {
        let plaintext = plaintext(len);
        let good = public.encrypt(&plaintext, b"", Aead::Aes256Gcm, &mut rng(16)).unwrap();
        let (header, payload) = split_ciphertext(&good).unwrap();
        assert_eq!(blake3::hash(payload), *Header::parse(header).unwrap().payload().hash());
        assert_eq!(payload.len() as u64, sealed_len(len as u64));
        let start = header.len();
        let key = decapsulate(&public, &keys, &good);
        assert!(*open_bytes(&key, &good).unwrap().expose() == plaintext, "{len}");

        for i in [0, 15, chunks - 1] {
            let number = i as u64 + 1;
            let mut changed = good.clone();
            changed[start + i * SEALED] ^= 1;
            let refusal = open_bytes(&key, &changed);
            assert!(matches!(refusal, Err(OpenError::NotAuthentic { chunk, .. }) if chunk == number), "{refusal:?}");
            let refusal = open_bytes(&key, &good[..start + i * SEALED]);
            assert!(matches!(refusal, Err(OpenError::Truncated { chunk, .. }) if chunk == number), "{refusal:?}");
        }
        let refusal = open_bytes(&key, &good[..good.len() - 1]);
        assert!(matches!(refusal, Err(OpenError::Truncated { chunk, .. }) if chunk == chunks as u64), "{refusal:?}");
        let longer = [&good[..], &[0]].concat();
        assert!(matches!(open_bytes(&key, &longer), Err(OpenError::TrailingBytes)));
    }
}

#[test]
fn the_header_decides_label_aead_length_and_digest() {
    let (good, key, start) = four_chunks();
    // Offsets of spec/payload.md.
    let (aead, length, digest, label) = (11, 44..52, 52, 88);
    let changed = |position: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[position] = value;
        open_bytes(&key, &bytes)
    };
    assert!(matches!(changed(aead, 2), Err(OpenError::NotAuthentic { chunk: 1, .. })));
    assert!(matches!(changed(aead, 3), Err(OpenError::Header(RequestError::Header(_)))));
    assert!(matches!(changed(label, b'L'), Err(OpenError::NotAuthentic { chunk: 1, .. })));
    assert!(matches!(changed(digest, good[digest] ^ 1), Err(OpenError::OtherPayload)));
    changed(length.end - 1, good[length.end - 1] ^ 1).unwrap_err();
    // One chunk less, cleanly cut: the third chunk was not sealed as the last.
    let mut shorter = good.clone();
    shorter[length].copy_from_slice(&(3 * CHUNK_LEN as u64).to_be_bytes());
    shorter.truncate(start + 3 * (CHUNK_LEN + TAG_LEN));
    assert!(matches!(open_bytes(&key, &shorter), Err(OpenError::NotAuthentic { chunk: 3, chunks: 3 })));
    // Nothing is reserved for a length beyond all memory.
    let mut huge = good.clone();
    huge[44..52].fill(0xff);
    open_bytes(&key, &huge).unwrap_err();
}

#[test]
fn another_payload_under_the_same_key_is_refused() {
    let (good, key, start) = four_chunks();
    let mut forged = good[..start].to_vec();
    let other = vec![7; 3 * CHUNK_LEN + 9];
    seal_stream(&mut &*other, &mut forged, &key, Aead::default(), b"label", &mut |_| {}).unwrap();
    assert!(matches!(open_bytes(&key, &forged), Err(OpenError::OtherPayload)));
}

#[test]
fn every_changed_byte_of_a_header_is_noticed_by_the_nodes() {
    for suite in [Suite::Sg02Ristretto255, Suite::Sg02Bls12381, Suite::Bz03Bls12381, Suite::Bz03Bn254] {
        let (public, _) = key(suite, 2, 3, 6);
        let ciphertext = public.encrypt(b"plaintext", b"label", Aead::default(), &mut rng(7)).unwrap();
        let (header, payload) = split_ciphertext(&ciphertext).unwrap();
        public.check_request(Statement::Decapsulate(header)).unwrap();
        for position in 0..header.len() {
            let mut changed = header.to_vec();
            changed[position] ^= 1 << (position % 8);
            public.check_request(Statement::Decapsulate(&changed)).unwrap_err();
        }
        let longer = [header, &[0]].concat();
        for bad in [&header[..header.len() - 1], &header[1..], &longer, &ciphertext, payload, b""] {
            public.check_request(Statement::Decapsulate(bad)).unwrap_err();
        }
    }
}

#[test]
fn headers_of_other_versions_and_keys_say_so() {
    let (public, _) = key(Suite::Sg02Ristretto255, 2, 3, 8);
    let (other, _) = key(Suite::Sg02Ristretto255, 2, 3, 9);
    let (wrong_suite, _) = key(Suite::Sg02Bls12381, 2, 3, 8);
    let ciphertext = public.encrypt(b"x", b"", Aead::default(), &mut rng(1)).unwrap();
    let (header, _) = split_ciphertext(&ciphertext).unwrap();
    for stranger in [other, wrong_suite] {
        let refusal = stranger.check_request(Statement::Decapsulate(header));
        assert!(matches!(refusal, Err(RequestError::OtherKey { .. })), "{refusal:?}");
    }
    let mut other = header.to_vec();
    for version in [1, 3] {
        other[5] = version;
        assert_eq!(public.check_request(Statement::Decapsulate(&other)), Err(RequestError::Version(version)));
    }
}

#[test]
fn labels_have_a_limit() {
    let (public, keys) = key(Suite::Sg02Ristretto255, 1, 1, 10);
    let label = vec![b'x'; MAX_LABEL_LEN];
    let ciphertext = public.encrypt(b"x", &label, Aead::default(), &mut rng(1)).unwrap();
    let payload_key = decapsulate(&public, &keys, &ciphertext);
    assert_eq!(open_bytes(&payload_key, &ciphertext).unwrap().expose(), b"x");
    let too_long = [&label[..], b"x"].concat();
    let refusal = public.encrypt(b"x", &too_long, Aead::default(), &mut rng(1)).unwrap_err();
    assert_eq!(refusal.to_string(), "label of 65537 bytes is over the limit of 65536");
}

#[test]
fn encrypting_takes_a_key_for_it() {
    for suite in [Suite::Bls04MinPk, Suite::Cks05Ristretto255] {
        let (public, _) = key(suite, 1, 1, 11);
        let refusal = public.encrypt(b"x", b"", Aead::default(), &mut rng(1)).unwrap_err();
        assert!(refusal.to_string().contains("not for decrypt"), "{refusal}");
    }
}

/// Gives its bytes in uneven pieces, as a socket does, with interruptions.
struct Trickle<R>(R, usize);

impl<R: Read> Read for Trickle<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 += 1;
        if self.1.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = buffer.len().min(1 + self.1 * 3571 % 9000);
        self.0.read(&mut buffer[..len])
    }
}

#[test]
fn files_stream_through_in_pieces() {
    let (public, keys) = key(Suite::Sg02Ristretto255, 2, 3, 12);
    let size: u64 = 20 << 20;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"before").unwrap();
    let mut told = Vec::new();
    let mut source = Trickle(io::repeat(0x5a).take(size), 0);
    let done = encrypt_stream(
        &public,
        b"label",
        Aead::Aes256Gcm,
        &mut source,
        &mut file,
        &mut |bytes| told.push(bytes),
        &mut rng(13),
    );
    assert_eq!(done.unwrap(), size);
    assert_eq!(told.len(), 20, "told of every MiB");
    assert!(told.is_sorted() && told.last() == Some(&size));
    let header_len = file.stream_position().unwrap() - 6 - sealed_len(size);

    file.seek(SeekFrom::Start(6)).unwrap();
    let mut source = Trickle(file, 0);
    let header = read_header(&mut source).unwrap();
    assert_eq!(header.len() as u64, header_len);
    let payload_key = decapsulate(&public, &keys, &header);
    let mut hasher = blake3::Hasher::new();
    let parsed = Header::parse(&header).unwrap();
    let mut last = 0;
    open_stream(&payload_key, &parsed, &mut source, &mut hasher, &mut |bytes| last = bytes).unwrap();
    assert_eq!(last, size);
    let mut expected = blake3::Hasher::new();
    io::copy(&mut io::repeat(0x5a).take(size), &mut expected).unwrap();
    assert_eq!(hasher.finalize(), expected.finalize());
}

#[test]
fn errors_of_readers_and_writers_come_through() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let (public, _) = key(Suite::Sg02Ristretto255, 1, 1, 14);
    let mut out = Cursor::new(Vec::new());
    let error =
        encrypt_stream(&public, b"", Aead::default(), &mut Broken, &mut out, &mut |_| {}, &mut rng(1)).unwrap_err();
    assert!(error.to_string().contains("the disk is gone"));
    assert!(matches!(read_header(&mut Broken), Err(OpenError::Io(_))));
    assert!(matches!(read_header(&mut &b"theta"[..]), Err(OpenError::Header(_))));
    assert!(matches!(read_header(&mut &b"what is this, a letter?"[..]), Err(OpenError::Header(_))));
}
