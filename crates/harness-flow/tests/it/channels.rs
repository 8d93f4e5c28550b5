//! Channels: who gets what, when waits end, who hears of the end.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use harness_core::Cancel;
use harness_core::testing::VirtualClock;
use harness_core::{Json, Millis, Time};
use harness_flow::channel::{ChannelError, ChannelSpec, Channels, ExternalStream};

type Waiting = (String, Pin<Box<dyn Future<Output = String>>>);

/// Plays a script of one operation a line and tells what each gave, and whose waits ended by it.
struct Play {
    spec: ChannelSpec,
    channels: Channels,
    clock: VirtualClock,
    aborts: [Cancel; 2],
    waiting: Vec<Waiting>,
    told: String,
}

impl Play {
    fn new(spec: ChannelSpec) -> Self {
        let clock = VirtualClock::still(Time(0));
        let channels = Channels::new(Arc::new(clock.clone()));
        let aborts = [Cancel::new(), Cancel::new()];
        Self { spec: spec.external(), channels, clock, aborts, waiting: Vec::new(), told: String::new() }
    }

    fn act(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let op = words.next().unwrap_or_default();
        let [a, b] = &self.aborts;
        let abort = if line.contains("@b") { b.clone() } else { a.clone() };
        let channel = self.channels.open(&self.spec, &abort).expect("a channel");
        let timeout = line.contains("!10").then_some(Millis(10));
        let argument = words.next().unwrap_or_default();
        let value = Json::parse(argument).unwrap_or_default();
        let mut direct = None;
        match op {
            "send" => {
                let channel = channel.timeout(timeout);
                self.waiting.push((
                    line.to_owned(),
                    Box::pin(async move { done(channel.send(value).await.map(|()| None)) }),
                ));
            }
            "recv" => {
                let channel = channel.timeout(timeout);
                self.waiting
                    .push((line.to_owned(), Box::pin(async move { done(channel.recv().await.map(Some)) })));
            }
            "try" => {
                direct = Some(channel.try_recv().map_or("nothing".to_owned(), |value| value.to_string()));
            }
            "external" => {
                let sent = self.channels.external(&self.spec).and_then(|channel| channel.send(value));
                direct = Some(done(sent.map(|()| None)));
            }
            "advance" => self.clock.advance(Millis(argument.parse().expect("a number"))),
            "abort" => drop(abort.cancel_with("stop")),
            "close" => self.channels.close(),
            "reopen" => self.channels.reopen(),
            other => unreachable!("{other}"),
        }
        let _ = write!(self.told, "{line}:");
        let _ = direct.map(|direct| write!(self.told, " {direct}"));
        self.settle();
        self.told.push('\n');
    }

    /// Polls until nothing more ends.
    fn settle(&mut self) {
        for _ in 0..3 {
            let told = &mut self.told;
            self.waiting.retain_mut(|(label, work)| {
                let ended = match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    std::task::Poll::Ready(ended) => ended,
                    std::task::Poll::Pending => return true,
                };
                let _ = write!(told, " [{label} -> {ended}]");
                false
            });
        }
    }
}

fn done(ended: Result<Option<Json>, ChannelError>) -> String {
    match ended {
        Ok(value) => value.map_or("ok".to_owned(), |value| value.to_string()),
        Err(error) => error.to_string(),
    }
}

fn play(spec: ChannelSpec, script: &str) -> String {
    let mut play = Play::new(spec);
    script.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| play.act(line));
    play.told
}

#[test]
fn a_queue_keeps_order_and_parks_senders() {
    let script = "
        send 1
        send 2
        send 3
        try
        recv
        recv
        recv @a
        recv @b
        send 4
        send 5";
    insta::assert_snapshot!(play(ChannelSpec::queue("q", 1), script), @r"
    send 1: [send 1 -> ok]
    send 2:
    send 3:
    try: 1 [send 2 -> ok]
    recv: [recv -> 2] [send 3 -> ok]
    recv: [recv -> 3]
    recv @a:
    recv @b:
    send 4: [send 4 -> ok] [recv @a -> 4]
    send 5: [send 5 -> ok] [recv @b -> 5]
    ");
}

#[test]
fn waits_end_in_time_and_leave_nothing_behind() {
    let script = "
        recv !10
        advance 9
        advance 1
        send 1
        send 2 !10
        advance 10
        try
        try";
    insta::assert_snapshot!(play(ChannelSpec::queue("q", 1), script), @r"
    recv !10:
    advance 9:
    advance 1: [recv !10 -> channel `q`: timeout of 10 ms exceeded]
    send 1: [send 1 -> ok]
    send 2 !10:
    advance 10: [send 2 !10 -> channel `q`: timeout of 10 ms exceeded]
    try: 1
    try: nothing
    ");
}

#[test]
fn an_abort_ends_the_waits_of_its_own_work_only() {
    let script = "
        recv @a
        recv @b
        abort @a
        send 1
        recv @a
        send 2 @a";
    insta::assert_snapshot!(play(ChannelSpec::queue("q", 1), script), @r"
    recv @a:
    recv @b:
    abort @a: [recv @a -> waiting for a channel was cancelled: stop]
    send 1: [send 1 -> ok] [recv @b -> 1]
    recv @a: [recv @a -> waiting for a channel was cancelled: stop]
    send 2 @a: [send 2 @a -> ok]
    ");
}

#[test]
fn a_queue_without_places_hands_over_directly() {
    let script = "
        send 1
        try
        recv
        recv
        send 2
        external 3
        recv";
    insta::assert_snapshot!(play(ChannelSpec::queue("q", 0), script), @r"
    send 1:
    try: nothing
    recv: [recv -> 1] [send 1 -> ok]
    recv:
    send 2: [send 2 -> ok] [recv -> 2]
    external 3: ok
    recv:
    ");
}

#[test]
fn a_value_stays_and_a_topic_does_not() {
    let script = "
        try
        recv @a
        recv @b
        send 1
        send 2
        recv
        try";
    insta::assert_snapshot!(play(ChannelSpec::value("v"), script), @r"
    try: nothing
    recv @a:
    recv @b:
    send 1: [send 1 -> ok] [recv @a -> 1] [recv @b -> 1]
    send 2: [send 2 -> ok]
    recv: [recv -> 2]
    try: 2
    ");
    insta::assert_snapshot!(play(ChannelSpec::topic("t"), script), @r"
    try: nothing
    recv @a:
    recv @b:
    send 1: [send 1 -> ok] [recv @a -> 1] [recv @b -> 1]
    send 2: [send 2 -> ok]
    recv:
    try: nothing
    ");
}

#[test]
fn a_topic_without_a_limit_waits_five_minutes() {
    let script = "
        recv
        advance 299999
        advance 1";
    insta::assert_snapshot!(play(ChannelSpec::topic("t"), script), @r"
    recv:
    advance 299999:
    advance 1: [recv -> channel `t`: timeout of 300.0 s exceeded]
    ");
}

#[test]
fn the_outside_never_waits_and_the_oldest_value_goes() {
    let script = "
        send 1
        send 2
        external 3
        try
        try
        try";
    insta::assert_snapshot!(play(ChannelSpec::queue("q", 1), script), @r"
    send 1: [send 1 -> ok]
    send 2:
    external 3: ok
    try: 3 [send 2 -> ok]
    try: 2
    try: nothing
    ");
}

#[test]
fn the_end_of_an_execution_ends_waits_and_a_new_run_goes_on() {
    let script = "
        external 1
        close
        external 2
        recv
        reopen
        external 3
        recv
        recv
        recv
        close";
    insta::assert_snapshot!(play(ChannelSpec::queue("q", 9), script), @r"
    external 1: ok
    close:
    external 2: channel `q` is closed: its execution has ended
    recv: [recv -> channel `q` is closed: its execution has ended]
    reopen:
    external 3: ok
    recv: [recv -> 1]
    recv: [recv -> 3]
    recv:
    close: [recv -> channel `q` is closed: its execution has ended]
    ");
}

#[test]
fn a_value_handed_to_a_receiver_that_is_gone_is_not_lost() {
    let channels = Channels::new(Arc::new(VirtualClock::still(Time(0))));
    let queue = channels.open(&ChannelSpec::queue("q", 2), &Cancel::new()).expect("a channel");
    let mut waits = Box::pin(queue.recv());
    let mut context = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    let mut sends = Box::pin(queue.send(Json::string("first")));
    assert!(sends.as_mut().poll(&mut context).is_ready());
    drop(waits);
    assert_eq!(queue.try_recv(), Some(Json::string("first")));
}

fn listen(spec: ChannelSpec) -> (Channels, ChannelSpec, ExternalStream) {
    let channels = Channels::new(Arc::new(VirtualClock::still(Time(0))));
    let spec = spec.external();
    let stream = channels.external(&spec).expect("a channel").listen();
    (channels, spec, stream)
}

#[track_caller]
fn check_stream(spec: ChannelSpec, sent: u64, expected: &[u64], missed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (channels, spec, mut stream) = listen(spec);
    let channel = channels.external(&spec).expect("a channel");
    (1..=sent).for_each(|n| channel.send(Json::of(&n).expect("JSON")).expect("it is open"));
    channels.close();
    assert!(channel.is_closed());
    let heard = runtime.block_on(async {
        let mut heard = Vec::new();
        while let Some(value) = stream.next().await {
            heard.push(value.to::<u64>().expect("a number"));
        }
        heard
    });
    assert_eq!((heard.as_slice(), stream.missed()), (expected, missed));
}

#[test]
fn streams_take_what_is_left_and_end_with_the_execution() {
    check_stream(ChannelSpec::queue("q", 3), 4, &[2, 3, 4], 0);
    check_stream(ChannelSpec::value("v"), 3, &[3], 2);
    check_stream(ChannelSpec::topic("t"), 2, &[1, 2], 0);
    check_stream(ChannelSpec::topic("t"), 1_002, &(3..=1_002).collect::<Vec<_>>(), 2);
}

#[test]
fn values_are_checked_where_they_are_sent() {
    let (channels, spec, _) = listen(ChannelSpec::queue("q", 3).of::<u64>());
    let fault = channels.external(&spec).expect("a channel").send(Json::string("x")).expect_err("no number");
    assert_eq!(fault.kind(), "channel_schema");
    assert_eq!(channels.open(&spec, &Cancel::new()).expect("a channel").try_recv(), None);
}

#[test]
fn one_name_has_one_declaration() {
    let (channels, spec, _) = listen(ChannelSpec::queue("q", 3));
    let fault = channels.open(&ChannelSpec::topic("q"), &Cancel::new()).expect_err("another mode");
    assert_eq!(fault.to_string(), "channel `q` is declared as topic, but it is a queue of 3");
    assert!(channels.open(&ChannelSpec::queue("q", 3), &Cancel::new()).is_ok());
    let fault = channels.external(&ChannelSpec::queue("p", 3)).expect_err("inside only");
    assert_eq!(fault.kind(), "channel_not_external");
    assert_eq!(spec.mode.to_string(), "queue of 3");
}
