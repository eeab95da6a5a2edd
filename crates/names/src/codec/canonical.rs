//! Tests that every value has one encoding: the reader reads what the writer wrote, and whatever it accepts is written again
//! as the same bytes.

use proptest::{collection::vec, option, prelude::*};

use super::{DecodeError, Reader, Writer};
use crate::{Delivery, Epoch, Label, MOST_LABEL, NodeId, Operation, Version};

/// One field of every kind that the codec has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    Flag(bool),
    Raw([u8; 5]),
    Bytes(Vec<u8>),
    Text(String),
    Word(String),
    Node(NodeId),
    Nodes(Vec<u16>),
    Version(Version),
    NamedVersion(Option<Version>),
    Epoch(Epoch),
    ShortEpoch(Epoch),
    Label(Label<Vec<u8>>),
    Operation(Operation),
    Delivery(Delivery),
    Option(Option<u32>),
}

/// How many kinds there are.
const KINDS: u8 = 19;

impl Field {
    fn write(&self, writer: Writer) -> Writer {
        match self {
            Self::U8(value) => writer.u8(*value),
            Self::U16(value) => writer.u16(*value),
            Self::U32(value) => writer.u32(*value),
            Self::U64(value) => writer.u64(*value),
            Self::Flag(value) => writer.flag(*value),
            Self::Raw(value) => writer.raw(value),
            Self::Bytes(value) => writer.bytes(value),
            Self::Text(value) => writer.text(value),
            Self::Word(value) => writer.word(value),
            Self::Node(value) => writer.node_id(*value),
            Self::Nodes(value) => writer.nodes(value),
            Self::Version(value) => writer.version(*value),
            Self::NamedVersion(value) => writer.named_version(*value),
            Self::Epoch(value) => writer.epoch(*value),
            Self::ShortEpoch(value) => writer.short_epoch(*value),
            Self::Label(value) => writer.label(value.view()),
            Self::Operation(value) => writer.u8(value.code()),
            Self::Delivery(value) => writer.delivery(*value),
            Self::Option(value) => writer.option(*value, Writer::u32),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::U8(_) => 0,
            Self::U16(_) => 1,
            Self::U32(_) => 2,
            Self::U64(_) => 3,
            Self::Flag(_) => 4,
            Self::Raw(_) => 5,
            Self::Bytes(_) => 6,
            Self::Text(_) => 7,
            Self::Word(_) => 8,
            Self::Node(_) => 9,
            Self::Nodes(_) => 10,
            Self::Version(_) => 11,
            Self::NamedVersion(_) => 12,
            Self::Epoch(_) => 13,
            Self::ShortEpoch(_) => 14,
            Self::Label(_) => 15,
            Self::Operation(_) => 16,
            Self::Option(_) => 17,
            Self::Delivery(_) => 18,
        }
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match kind {
            0 => Self::U8(reader.u8()?),
            1 => Self::U16(reader.u16()?),
            2 => Self::U32(reader.u32()?),
            3 => Self::U64(reader.u64()?),
            4 => Self::Flag(reader.flag()?),
            5 => Self::Raw(reader.array()?),
            6 => Self::Bytes(reader.bytes()?.to_vec()),
            7 => Self::Text(reader.text(1000)?.to_owned()),
            8 => Self::Word(reader.word()?.to_owned()),
            9 => Self::Node(reader.node_id()?),
            10 => Self::Nodes(reader.nodes()?),
            11 => Self::Version(reader.version()?),
            12 => Self::NamedVersion(reader.named_version()?),
            13 => Self::Epoch(reader.epoch()?),
            14 => Self::ShortEpoch(reader.short_epoch()?),
            15 => Self::Label(reader.label()?.copied()),
            16 => Self::Operation(reader.operation()?),
            17 => Self::Option(reader.option(Reader::u32)?),
            18 => Self::Delivery(reader.delivery()?),
            other => panic!("no field is of kind {other}"),
        })
    }
}

fn field() -> impl Strategy<Value = Field> {
    let numbers = (any::<u64>(), any::<u32>(), 1..=u32::MAX, 1..=u16::MAX);
    let longer = (vec(any::<u8>(), 0..40), "\\PC{0,20}", vec(1..=u16::MAX, 0..6), option::of(any::<u32>()));
    (0..KINDS, numbers, longer).prop_map(|(kind, (eight, four, counted, node), (bytes, text, nodes, maybe))| match kind
    {
        0 => Field::U8(bytes.first().copied().unwrap_or(7)),
        1 => Field::U16(node - 1),
        2 => Field::U32(four),
        3 => Field::U64(eight),
        4 => Field::Flag(eight % 2 == 0),
        5 => Field::Raw([kind; 5]),
        6 => Field::Bytes(bytes),
        7 => Field::Text(text),
        8 => Field::Word(text),
        9 => Field::Node(NodeId::try_from(node).unwrap()),
        10 => Field::Nodes(nodes),
        11 => Field::Version(Version::new(counted).unwrap()),
        12 => Field::NamedVersion(maybe.and_then(Version::new)),
        13 => Field::Epoch(Epoch::new(four)),
        14 => Field::ShortEpoch(Epoch::new(four)),
        15 => Field::Label(Label::new(bytes).unwrap()),
        16 => Field::Operation(Operation::ALL[usize::from(node) % Operation::ALL.len()]),
        17 => Field::Option(maybe),
        _ => Field::Delivery(Delivery::ALL[usize::from(node) % Delivery::ALL.len()]),
    })
}

fn write(fields: &[Field]) -> Vec<u8> {
    fields.iter().fold(Writer::default(), |writer, field| field.write(writer)).finish()
}

fn read(kinds: &[u8], bytes: &[u8]) -> Result<Vec<Field>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let fields = kinds.iter().map(|kind| Field::read(*kind, &mut reader)).collect::<Result<_, _>>()?;
    reader.end(fields)
}

proptest! {
    #[test]
    fn what_is_written_is_read(fields in vec(field(), 0..8), place in any::<prop::sample::Index>()) {
        let (bytes, kinds) = (write(&fields), fields.iter().map(Field::kind).collect::<Vec<_>>());
        prop_assert_eq!(read(&kinds, &bytes), Ok(fields));
        let longer = [&bytes[..], &[0]].concat();
        prop_assert!(read(&kinds, &longer).is_err());
        if !bytes.is_empty() {
            prop_assert!(read(&kinds, &bytes[..place.index(bytes.len())]).is_err());
        }
    }

    #[test]
    fn what_is_read_is_written_again_as_it_was(
        fields in vec(field(), 1..8),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let (mut bytes, kinds) = (write(&fields), fields.iter().map(Field::kind).collect::<Vec<_>>());
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        if let Ok(others) = read(&kinds, &bytes) {
            prop_assert_ne!(&others, &fields);
            prop_assert_eq!(write(&others), bytes);
        }
    }

    #[test]
    fn noise_is_refused_or_written_again_as_it_was(kinds in vec(0..KINDS, 0..4), noise in vec(0..4_u8, 0..24)) {
        if let Ok(fields) = read(&kinds, &noise) {
            prop_assert_eq!(write(&fields), noise);
        }
    }
}

#[test]
fn a_buffer_of_somebody_else_gets_the_same_bytes() {
    let mut buffer = b"before".to_vec();
    Writer::onto(&mut buffer).version(Version::FIRST).epoch(Epoch::new(2)).text("x").finish();
    let own = Writer::default().version(Version::FIRST).epoch(Epoch::new(2)).text("x").finish();
    assert_eq!(buffer, [b"before", &own[..]].concat());
}

#[test]
fn versions_and_epochs_have_one_encoding() {
    assert_eq!(Writer::default().version(Version::FIRST).finish(), [0, 0, 0, 1]);
    assert_eq!(Writer::default().named_version(None).finish(), [0; 4]);
    assert_eq!(Writer::default().epoch(Epoch::new(258)).finish(), [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(Writer::default().short_epoch(Epoch::new(258)).finish(), [0, 0, 1, 2]);
    assert_eq!(Reader::new(&[0; 4]).version(), Err(DecodeError::Field("version 0")));
    assert_eq!(Reader::new(&[0; 4]).named_version(), Ok(None));
    assert_eq!(Reader::new(&[0, 0, 0, 1, 0, 0, 0, 0]).epoch(), Err(DecodeError::Field("an epoch")));
}

#[test]
fn no_field_is_longer_than_it_may_be() {
    let long = Writer::default().bytes(&vec![0; MOST_LABEL + 1]).finish();
    assert_eq!(Reader::new(&long).label(), Err(DecodeError::TooLong { got: MOST_LABEL + 1, most: MOST_LABEL }));
    // The length is refused before any byte of the label is needed.
    assert!(matches!(Reader::new(&[0xff; 4]).label(), Err(DecodeError::TooLong { .. })));
}

#[test]
fn words_are_cut_between_characters() {
    for (text, kept) in [("a".repeat(300), 255), ("é".repeat(200), 254), ("a".repeat(255), 255)] {
        let written = Writer::default().word(&text).finish();
        assert_eq!(Reader::new(&written).word(), Ok(&text[..kept]));
    }
}

#[test]
fn items_are_read_to_the_end_and_no_further() {
    let bytes = Writer::default().u16(1).u16(2).finish();
    assert_eq!(Reader::new(&bytes).all(Reader::u16), Ok(vec![1, 2]));
    assert_eq!(Reader::new(&bytes[..3]).all(Reader::u16), Err(DecodeError::Truncated));
    assert_eq!(Reader::new(&[]).all(Reader::u16), Ok(Vec::new()));
    assert_eq!(Reader::new(&bytes).all(|reader| reader.take(0)), Err(DecodeError::Trailing), "it would never end");
}
