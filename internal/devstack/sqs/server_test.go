package sqs_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/sqs"
	"dakghar/internal/devstack/wiretest"
)

// bubble runs f with a server of its own on the bubble's clock.
func bubble(t *testing.T, cfg sqs.Config, f func(t *testing.T, s *sqs.Server, c *client)) {
	synctest.Test(t, func(t *testing.T) {
		s := sqs.New(cfg)
		t.Cleanup(s.Close)
		f(t, s, newClient(t, wiretest.Serve(t, s)))
	})
}

func TestShortPollOverTheInFlightLimitIsRefused(t *testing.T) {
	bubble(t, sqs.Config{InFlightMax: 2}, func(t *testing.T, _ *sqs.Server, c *client) {
		url := c.create("work", nil)
		c.send(url, "1", "2", "3")
		got := c.receive(url, 10)
		if len(got) != 2 {
			t.Fatalf("received %d messages, want the limit of 2", len(got))
		}
		_, err := c.ReceiveMessage(c.ctx, &sdk.ReceiveMessageInput{QueueUrl: url})
		c.mustRefuse(err, "OverLimit")
		c.delete(url, got[0].ReceiptHandle)
		if diff := cmp.Diff([]string{"3"}, bodies(c.receive(url, 10))); diff != "" {
			t.Errorf("after a delete (-want +got):\n%s", diff)
		}
	})
}

func TestShortPollOfAnEmptyQueueIsNotOverTheLimit(t *testing.T) {
	bubble(t, sqs.Config{InFlightMax: 1}, func(t *testing.T, _ *sqs.Server, c *client) {
		url := c.create("work", nil)
		c.send(url, "1")
		c.receiveOne(url)
		if got := c.receive(url, 10); len(got) != 0 {
			t.Errorf("received %v", bodies(got))
		}
	})
}

func TestLongPollOverTheInFlightLimitWaitsForRoom(t *testing.T) {
	bubble(t, sqs.Config{InFlightMax: 1}, func(t *testing.T, _ *sqs.Server, c *client) {
		url := c.create("work", nil)
		c.send(url, "1", "2")
		m := c.receiveOne(url)
		got, took := c.poll(url, 20)
		wiretest.Wait(3 * time.Second)
		c.delete(url, m.ReceiptHandle)
		if diff := cmp.Diff([]string{"2"}, bodies(<-got)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		if after := <-took; after != 3*time.Second {
			t.Errorf("woke after %v, want 3 s", after)
		}
	})
}

func TestReceiveWithoutHidingGivesEachMessageOnceAnAnswer(t *testing.T) {
	bubble(t, sqs.Config{}, func(t *testing.T, _ *sqs.Server, c *client) {
		url := c.create("work", map[string]string{"VisibilityTimeout": "0"})
		c.send(url, "1", "2", "3")
		if diff := cmp.Diff([]string{"1", "2"}, bodies(c.receive(url, 2))); diff != "" {
			t.Errorf("first receive (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"3", "1", "2"}, bodies(c.receive(url, 10))); diff != "" {
			t.Errorf("second receive: those seen go behind (-want +got):\n%s", diff)
		}
	})
}

// A long poll must sleep: over its 20 s it looks at the clock a handful of
// times, and never more often than something happens.
func TestLongPollDoesNotSpin(t *testing.T) {
	var looks atomic.Int32
	cfg := sqs.Config{Now: func() time.Time { looks.Add(1); return time.Now() }}
	bubble(t, cfg, func(t *testing.T, _ *sqs.Server, c *client) {
		url := c.create("work", nil)
		looks.Store(0)
		c.receiveFor(url, 1, 20)
		if n := looks.Load(); n > 4 {
			t.Errorf("an idle poll looked at the clock %d times", n)
		}
	})
}

func TestChangedIsClosedByWhatCanBeReceived(t *testing.T) {
	bubble(t, sqs.Config{}, func(t *testing.T, s *sqs.Server, c *client) {
		if _, ok := s.Changed("work"); ok {
			t.Error("a queue that does not exist has a signal")
		}
		url := c.create("work", nil)
		changed, _ := s.Changed("work")
		select {
		case <-changed:
			t.Error("the signal came before the message")
		default:
		}
		c.send(url, "x")
		select {
		case <-changed:
		default:
			t.Error("no signal came with the message")
		}
		m := c.receiveOne(url)
		changed, _ = s.Changed("work")
		_, err := c.ChangeMessageVisibility(c.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle})
		c.must(err)
		select {
		case <-changed:
		default:
			t.Error("no signal came with the message that was given back")
		}
	})
}

// The clock, the timers and the ids are the caller's.
func TestClockTimersAndIDsAreInjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
		var elapsed, ids atomic.Int64
		fire, waits := make(chan time.Time), make(chan time.Duration, 1)
		s := sqs.New(sqs.Config{
			Region: "eu-west-1", AccountID: "111122223333", BaseURL: "http://queues.test/",
			Now:   func() time.Time { return start.Add(time.Duration(elapsed.Load())) },
			NewID: func() string { return "id-" + strconv.FormatInt(ids.Add(1), 10) },
			Timer: func(d time.Duration) (<-chan time.Time, func()) {
				waits <- d
				return fire, func() {}
			},
		})
		t.Cleanup(s.Close)
		c := newClient(t, wiretest.Serve(t, s))

		url := c.create("work", nil) // request id-1
		if *url != "http://queues.test/111122223333/work" {
			t.Errorf("the URL is %s", *url)
		}
		out, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("x"), DelaySeconds: 5}) // request id-2
		c.must(err)
		if *out.MessageId != "id-3" {
			t.Errorf("the message id is %s", *out.MessageId)
		}
		if got := c.arn(url); got != "arn:aws:sqs:eu-west-1:111122223333:work" {
			t.Errorf("the ARN is %s", got)
		}
		got, _ := c.poll(url, 20)
		if d := <-waits; d != 5*time.Second {
			t.Errorf("the poll sleeps %v, want until the delay ends after 5 s", d)
		}
		elapsed.Store(int64(5 * time.Second))
		fire <- start.Add(5 * time.Second)
		if diff := cmp.Diff([]string{"x"}, bodies(<-got)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

func TestCloseStopsAMoveTask(t *testing.T) {
	bubble(t, sqs.Config{}, func(t *testing.T, s *sqs.Server, c *client) {
		work, dead := c.pair("work")
		c.fail(work, "1", "2", "3")
		c.move(dead, nil, 1)
		synctest.Wait()
		s.Close()
		wiretest.Wait(time.Minute)
		if diff := cmp.Diff(counts{"2", "0", "0"}, c.counts(dead)); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
	})
}
