//! Contracts as somebody would write them who has read RFC 9380, EIP-196 and EIP-197 but none of our code.

use crate::assembler::{Assembler, Op, Precompile, Word};

/// The domain separation tag of signatures, from `spec/bls04.md`.
const DOMAIN: &[u8] = b"BLS_SIG_BN254G1_XMD:SHA-256_SVDW_RO_POP_";
/// -g2: x and y of EIP-197's generator, each with the imaginary part first, y negated.
const MINUS_G2: [&str; 4] = [
    "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2",
    "1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed",
    "275dc4a288d1afb3cbb1ac09187524c7db36395df7be3b99e673b13a075a65ec",
    "1d9befcd05a5323e6da4d435f3b617cdb3af83285c2df711ef39c01571827f9d",
];

/// The address at which precompiles read and write points.
const POINTS: u16 = 0x000;
/// The address at which the blocks of `expand_message_xmd` are hashed.
const BLOCK: u16 = 0x400;
/// The address at which the message is hashed, above all others, because the message may be long.
const MESSAGE: u16 = 0x4000;

/// A verifier for one public key (128 bytes): it takes a signature (64 bytes) and a message, hashes the message to the
/// curve, and returns the result of the pairing check. It refuses an all-zero signature, which the precompile would accept.
pub(crate) fn verifier(public_key: &[u8; 128]) -> Vec<u8> {
    let mut a = Assembler::new();
    a.push(&[64]).op(Op::CallDataSize).op(Op::Lt).refuse_if();
    let hash = hash_to_curve(&mut a);
    // CALLDATACOPY(POINTS, 0, 64)
    a.push(&[64]).push(&[]).number(POINTS).op(Op::CallDataCopy);
    a.load(Word(POINTS)).load(Word(POINTS + 32)).op(Op::Or).op(Op::IsZero).refuse_if();
    let minus_g2 = MINUS_G2.map(|part| a.constant(part));
    a.place(&minus_g2, POINTS + 64);
    a.place(&hash, POINTS + 192);
    a.place_bytes(public_key, POINTS + 256);
    a.call(Precompile::EcPairing, POINTS, 384, POINTS, 32);
    a.give(POINTS, 32)
}

/// A contract that passes its call data to a precompile and returns the answer, which has this length.
pub(crate) fn relay(precompile: Precompile, returned: u16) -> Vec<u8> {
    let mut a = Assembler::new();
    // CALLDATACOPY(0, 0, CALLDATASIZE)
    a.op(Op::CallDataSize).push(&[]).push(&[]).op(Op::CallDataCopy);
    // STATICCALL(GAS, precompile, 0, CALLDATASIZE, 0, returned)
    a.number(returned).push(&[]).op(Op::CallDataSize).push(&[]);
    a.push(&[precompile as u8]).op(Op::Gas).op(Op::StaticCall).op(Op::IsZero).refuse_if();
    a.give(0, returned)
}

/// RFC 9380, section 3, for the suite `BN254G1_XMD:SHA-256_SVDW_RO_`; the cofactor is one. x and y.
fn hash_to_curve(a: &mut Assembler) -> [Word; 2] {
    let [u0, u1] = hash_to_field(a);
    let [x0, y0] = map_to_curve(a, u0);
    let [x1, y1] = map_to_curve(a, u1);
    a.place(&[x0, y0, x1, y1], POINTS);
    a.call(Precompile::EcAdd, POINTS, 128, POINTS, 64);
    let x = a.load(Word(POINTS)).keep();
    [x, a.load(Word(POINTS + 32)).keep()]
}

/// Section 5.2: two elements from 96 bytes.
fn hash_to_field(a: &mut Assembler) -> [Word; 2] {
    let [b1, b2, b3] = expand_message(a);
    // The first 48 bytes are the number 2^128 b1 plus the upper half of b2.
    let shift = a.constant("0000000000000000000000000000000100000000000000000000000000000000");
    let upper = a.load(b2).push(&[128]).op(Op::Shr).keep();
    let u0 = a.mul(b1, shift);
    let u0 = a.add(u0, upper);
    // The other 48 are 2^256 times the lower half of b2, plus b3.
    let lower = a.push(&[0xff; 16]).load(b2).op(Op::And).keep();
    let u1 = a.mul(lower, shift);
    let u1 = a.mul(u1, shift);
    [u0, a.add(u1, b3)]
}

/// Section 5.3.1: `expand_message_xmd` with SHA-256 of the call data after its first 64 bytes; gives three blocks.
fn expand_message(a: &mut Assembler) -> [Word; 3] {
    let domain = [DOMAIN, &[u8::try_from(DOMAIN.len()).unwrap()]].concat();
    // Z_pad (64 zero bytes, which memory has already), the message, then l_i_b_str || 0 || DST_prime in two words.
    // CALLDATACOPY(MESSAGE + 64, 64, CALLDATASIZE - 64)
    a.push(&[64]).op(Op::CallDataSize).op(Op::Sub).push(&[64]).number(MESSAGE + 64).op(Op::CallDataCopy);
    let mut end = [&[0, 96, 0], &*domain].concat();
    let end_len = u16::try_from(end.len()).unwrap();
    end.resize(64, 0);
    for (at, part) in [(0, &end[..32]), (32, &end[32..])] {
        a.push(part).op(Op::CallDataSize).number(MESSAGE + at).op(Op::Add).op(Op::MStore);
    }
    // STATICCALL(GAS, 2, MESSAGE, CALLDATASIZE + end, BLOCK, 32)
    a.number(32).number(BLOCK).op(Op::CallDataSize).number(end_len).op(Op::Add).number(MESSAGE);
    a.push(&[Precompile::Sha256 as u8]).op(Op::Gas).op(Op::StaticCall).op(Op::IsZero).refuse_if();
    let b0 = a.load(Word(BLOCK)).keep();
    let zero = a.push(&[0]).keep();
    let mut last = zero;
    [1, 2, 3].map(|number| {
        let mut tail = [&[number], &*domain].concat();
        let len = 32 + u16::try_from(tail.len()).unwrap();
        tail.resize(64, 0);
        let mixed = a.load(b0).load(last).op(Op::Xor).keep();
        a.place(&[mixed], BLOCK);
        a.place_bytes(&tail, BLOCK + 32);
        a.call(Precompile::Sha256, BLOCK, len, BLOCK, 32);
        last = a.load(Word(BLOCK)).keep();
        last
    })
}

/// Section 6.6.1, the map of Shallue and van de Woestijne in the straight-line form of appendix F.1, for y^2 = x^3 + 3
/// and Z = 1.
fn map_to_curve(a: &mut Assembler, u: Word) -> [Word; 2] {
    let one = a.push(&[1]).keep();
    // g(Z), -Z / 2, sqrt(-g(Z) (3 Z^2)), -4 g(Z) / (3 Z^2).
    let c1 = a.push(&[4]).keep();
    let c2 = a.constant("183227397098d014dc2822db40c0ac2ecbc0b548b438e5469e10460b6c3e7ea3");
    let c3 = a.constant("00000000000000016789af3a83522eb353c98fc6b36d713d5d8d1cc5dffffffa");
    let c4 = a.constant("10216f7ba065e00de81ac1e7808072c9dd2b2385cd7b438469602eb24829a9bd");
    let tv1 = a.mul(u, u);
    let tv1 = a.mul(tv1, c1);
    let tv2 = a.add(one, tv1);
    let tv1 = a.sub(one, tv1);
    let tv3 = a.mul(tv1, tv2);
    let tv3 = a.invert(tv3);
    let tv4 = a.mul(u, tv1);
    let tv4 = a.mul(tv4, tv3);
    let tv4 = a.mul(tv4, c3);
    let x1 = a.sub(c2, tv4);
    let (gx1, y1) = curve(a, x1);
    let e1 = is_root(a, y1, gx1);
    let x2 = a.add(c2, tv4);
    let (gx2, y2) = curve(a, x2);
    let e2 = is_root(a, y2, gx2);
    let x3 = a.mul(tv2, tv2);
    let x3 = a.mul(x3, tv3);
    let x3 = a.mul(x3, x3);
    let x3 = a.mul(x3, c4);
    let x3 = a.add(x3, one);
    let (_, y3) = curve(a, x3);
    // The first of the three values that is the x of a point.
    let x = a.choose(e2, x2, x3);
    let x = a.choose(e1, x1, x);
    let y = a.choose(e2, y2, y3);
    let y = a.choose(e1, y1, y);
    // The root y that has the parity of u.
    let zero = a.push(&[0]).keep();
    let negated = a.sub(zero, y);
    let (of_u, of_y) = (a.parity(u), a.parity(y));
    let same = a.equal(of_u, of_y);
    [x, a.choose(same, y, negated)]
}

/// x^3 + 3, and a square root of it if there is one.
fn curve(a: &mut Assembler, x: Word) -> (Word, Word) {
    let three = a.push(&[3]).keep();
    let square = a.mul(x, x);
    let cube = a.mul(square, x);
    let gx = a.add(cube, three);
    (gx, a.root(gx))
}

fn is_root(a: &mut Assembler, y: Word, gx: Word) -> Word {
    let square = a.mul(y, y);
    a.equal(square, gx)
}
