//! Questions to a primary, and the records of what answers them.

use std::time::Duration;

use domain::{
    base::{
        Message, Record,
        iana::{Class, Rcode, Rtype},
        message::RecordSection,
        name::ParsedName,
        rdata::ComposeRecordData as _,
    },
    rdata::AllRecordData,
};
use theta_names::WallTime;

use super::{
    TransferError,
    connection::Connection,
    tsig::{Key, Sequence, TsigError},
};
use crate::{
    owner::Owner,
    zone::{MOST_FILE, Zone, serial_of},
};

/// How long a transfer may take.
const LONGEST: Duration = Duration::from_secs(600);
/// How long a question about the serial may take.
const LONGEST_QUESTION: Duration = Duration::from_secs(20);
/// The longest message.
const MESSAGE: u64 = 65_535;

pub(super) type AnyRecord<'a> = Record<ParsedName<&'a [u8]>, AllRecordData<&'a [u8], ParsedName<&'a [u8]>>>;

/// What is made of the records of an answer.
pub(super) trait Arriving {
    /// Takes the next record.
    fn add(&mut self, record: &AnyRecord<'_>) -> Result<(), TransferError>;

    /// Whether the last one has come.
    fn has_ended(&self) -> bool;
}

/// A question about the zone, with an id that nobody guesses (RFC 1035, section 4.1).
pub(super) fn question(origin: &Owner, kind: Rtype) -> Result<Vec<u8>, TransferError> {
    let mut id = [0; 2];
    aws_lc_rs::rand::fill(&mut id).map_err(|_| TransferError::Message("there is no randomness"))?;
    let header = [id, [0; 2], [0, 1], [0; 2], [0; 2], [0; 2]].concat();
    let ends = [kind.to_int().to_be_bytes(), Class::IN.to_int().to_be_bytes()].concat();
    Ok([header, origin.wire(), ends].concat())
}

/// A question about what has changed since this copy, whose SOA record is in the authority section (RFC 1995, section 3).
pub(super) fn question_since(copy: &Zone) -> Result<Vec<u8>, TransferError> {
    let none = TransferError::Message("the copy has no SOA record");
    let Some((start, data)) = copy.start().and_then(|start| Some((start, start.data.first()?))) else {
        return Err(none);
    };
    let mut question = question(copy.apex(), Rtype::IXFR)?;
    // The number of records in that section.
    question.iter_mut().skip(9).take(1).for_each(|count| *count = 1);
    question.extend(copy.apex().wire());
    question.extend([Rtype::SOA.to_int().to_be_bytes(), Class::IN.to_int().to_be_bytes()].concat());
    question.extend(start.ttl.to_be_bytes());
    question.extend(u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes());
    question.extend(data);
    Ok(question)
}

/// A message that answers the question.
fn answer<'a>(bytes: &'a [u8], question: &[u8]) -> Result<&'a Message<[u8]>, TransferError> {
    let message = Message::from_slice(bytes).map_err(|_| TransferError::Message("a message is too short"))?;
    let header = message.header();
    if !header.qr() || bytes.first_chunk::<2>() != question.first_chunk() {
        return Err(TransferError::Message("a message answers another question"));
    }
    if header.rcode() == Rcode::NOERROR { Ok(message) } else { Err(TransferError::Refused(header.rcode().to_string())) }
}

/// The records of a message's answer.
fn records(message: &Message<[u8]>) -> impl Iterator<Item = Result<AnyRecord<'_>, TransferError>> {
    let unread = |_| TransferError::Message("a record cannot be read");
    let (section, error) = match message.answer() {
        Ok(section) => (Some(section), None),
        Err(error) => (None, Some(Err(unread(error)))),
    };
    let all = section.into_iter().flat_map(RecordSection::into_records);
    error.into_iter().chain(all.map(move |record| record.map_err(unread)))
}

/// The serial that the primary has now.
pub(super) fn serial(address: &str, key: &Key, origin: &Owner) -> Result<u32, TransferError> {
    let mut connection = Connection::open(address, LONGEST_QUESTION, MESSAGE)?;
    let mut question = question(origin, Rtype::SOA)?;
    let mut sequence = Sequence::request(key, &mut question, WallTime::now().seconds());
    connection.send(&question)?;
    let bytes = connection.receive()?;
    sequence.answer(&bytes, WallTime::now().seconds())?;
    let message = answer(&bytes, &question)?;
    for record in records(message) {
        if let Some(start) = start(&record?, origin)? {
            return serial_of(&start).ok_or(TransferError::Message("the SOA record is too short"));
        }
    }
    Err(TransferError::Message("there is no SOA record in the answer"))
}

/// Asks, and takes all records of the answer.
pub(super) fn receive(
    address: &str,
    key: &Key,
    mut question: Vec<u8>,
    arriving: &mut impl Arriving,
) -> Result<(), TransferError> {
    let mut connection = Connection::open(address, LONGEST, MOST_FILE)?;
    let mut sequence = Sequence::request(key, &mut question, WallTime::now().seconds());
    connection.send(&question)?;
    let mut uncovered = Vec::new();
    while !arriving.has_ended() {
        let bytes = match connection.receive() {
            Ok(bytes) => bytes,
            // The end of the zone may have come, and no signature after it.
            Err(error) => {
                return Err(sequence.finish().err().filter(|_| !uncovered.is_empty()).map_or(error, Into::into));
            }
        };
        sequence.answer(&bytes, WallTime::now().seconds()).map_err(|error| refusal(&bytes, error))?;
        uncovered.push(bytes);
        // Nothing is read of a message before a signature covers it: names unfold to many times what came.
        if sequence.finish().is_ok() {
            for bytes in uncovered.drain(..) {
                take(&bytes, &question, arriving)?;
            }
        }
    }
    Ok(sequence.finish()?)
}

/// Takes the records of a message.
fn take(bytes: &[u8], question: &[u8], arriving: &mut impl Arriving) -> Result<(), TransferError> {
    let mut count = 0_usize;
    for record in records(answer(bytes, question)?) {
        arriving.add(&record?)?;
        count = count.saturating_add(1);
    }
    if count == 0 { Err(TransferError::Message("a message has no records")) } else { Ok(()) }
}

/// A primary that refuses does not always sign that: then what it says is more than that it is not signed. It is only words.
fn refusal(bytes: &[u8], error: TsigError) -> TransferError {
    let said = Message::from_slice(bytes).map(|message| message.header().rcode());
    match said {
        Ok(code) if code != Rcode::NOERROR && error == TsigError::Unsigned => TransferError::Refused(code.to_string()),
        _ => error.into(),
    }
}

/// The data of a record, if it is the zone's start of authority.
pub(super) fn start(record: &AnyRecord<'_>, origin: &Owner) -> Result<Option<Vec<u8>>, TransferError> {
    if record.rtype() != Rtype::SOA {
        return Ok(None);
    }
    let owner = crate::zone::owner_of(record)?;
    let mut data = Vec::new();
    record
        .data()
        .compose_canonical_rdata(&mut data)
        .map_err(|_| TransferError::Message("the SOA record is too long"))?;
    if owner == *origin { Ok(Some(data)) } else { Err(TransferError::Message("a SOA record is of another zone")) }
}
