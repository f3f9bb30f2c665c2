package body_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"dakghar/internal/body"
)

// One accepted body, without the services' own time: compress, seal, three calls of SDK types.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 10, 100 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			w := newWorld()
			cfg := w.config()
			cfg.Dynamo = discard{w}
			s, p := body.New(cfg), request("1", "put1", sample(size))
			if _, err := s.Put(ctx, p); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				w.calls = w.calls[:0]
				if _, err := s.Put(ctx, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	w := newWorld()
	s, p := w.store(), request("1", "put1", sample(10<<10))
	if _, err := s.Put(ctx, p); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(10 << 10)
	b.ReportAllocs()
	for b.Loop() {
		w.calls = w.calls[:0]
		if _, err := open(s, p); err != nil {
			b.Fatal(err)
		}
	}
}

// discard is a table that forgets bodies, so that each Put is a first one.
type discard struct{ *world }

func (d discard) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if _, body := in.Item["p"]; body {
		return &dynamodb.PutItemOutput{}, nil
	}
	return d.world.PutItem(ctx, in, opts...)
}
