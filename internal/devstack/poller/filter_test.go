package poller_test

import (
	"encoding/json"
	"strings"
	"testing"

	"dakghar/internal/devstack/poller"
)

const modified = `{"eventName":"MODIFY","dynamodb":{"SizeBytes":26,
	"Keys":{"id":{"S":"out_1"}},
	"NewImage":{"id":{"S":"out_1"},"gen":{"N":"12"},"held":{"BOOL":false},"gone":{"NULL":true},"tags":{"SS":["red","blue"]},"none":{"SS":[]}}}}`

func TestAFilterMatchesAsLambdaDoes(t *testing.T) {
	for pattern, want := range map[string]bool{
		`{"eventName":["INSERT","MODIFY"]}`:                                                          true,
		`{"eventName":["INSERT"]}`:                                                                   false,
		`{"eventName":["modify"]}`:                                                                   false,
		`{"eventName":[{"equals-ignore-case":"modify"}]}`:                                            true,
		`{"eventName":[{"prefix":"MOD"}]}`:                                                           true,
		`{"eventName":[{"suffix":"IFY"}]}`:                                                           true,
		`{"eventName":[{"prefix":"INS"}]}`:                                                           false,
		`{"eventName":[{"anything-but":"REMOVE"}]}`:                                                  true,
		`{"eventName":[{"anything-but":["REMOVE","MODIFY"]}]}`:                                       false,
		`{"eventName":[{"anything-but":{"prefix":"MOD"}}]}`:                                          false,
		`{"eventName":[{"anything-but":{"prefix":"INS"}}]}`:                                          true,
		`{"userIdentity":{"principalId":[{"anything-but":"dynamodb.amazonaws.com"}]}}`:               false, // absent
		`{"dynamodb":{"NewImage":{"pa":{"N":[{"exists":false}]}}}}`:                                  true,
		`{"dynamodb":{"NewImage":{"gen":{"N":[{"exists":false}]}}}}`:                                 false,
		`{"dynamodb":{"NewImage":{"gen":{"N":[{"exists":true}]}}}}`:                                  true,
		`{"dynamodb":{"NewImage":{"gen":[{"exists":true}]}}}`:                                        false, // not a leaf
		`{"dynamodb":{"NewImage":{"gen":[{"exists":false}]}}}`:                                       true,  // not a leaf either
		`{"dynamodb":{"OldImage":{"gen":{"N":[{"exists":false}]}}}}`:                                 true,  // no OldImage at all
		`{"dynamodb":{"NewImage":{"gen":{"N":["12"]}}}}`:                                             true,
		`{"dynamodb":{"NewImage":{"gen":{"N":[12]}}}}`:                                               false, // a DynamoDB number is text
		`{"dynamodb":{"SizeBytes":[26]}}`:                                                            true,
		`{"dynamodb":{"NewImage":{"held":{"BOOL":[false]}}}}`:                                        true,
		`{"dynamodb":{"NewImage":{"tags":{"SS":["blue"]}}}}`:                                         true,
		`{"dynamodb":{"NewImage":{"tags":{"SS":["green"]}}}}`:                                        false,
		`{"dynamodb":{"NewImage":{"none":{"SS":[{"exists":true}]}}}}`:                                false,
		`{"eventName":["MODIFY"],"dynamodb":{"Keys":{"id":{"S":[{"prefix":"in_"}]}}}}`:               false,
		`{"eventName":["MODIFY"],"dynamodb":{"Keys":{"id":{"S":[{"prefix":"in_"},"out_1"]}}}}`:       true,
		`{"$or":[{"eventName":["INSERT"]},{"dynamodb":{"Keys":{"id":{"S":["out_1"]}}}}]}`:            true,
		`{"$or":[{"eventName":["INSERT"]},{"dynamodb":{"Keys":{"id":{"S":["out_2"]}}}}]}`:            false,
		`{"dynamodb":{"NewImage":{"gone":{"NULL":[true]}}},"eventSource":[{"exists":false}]}`:        true,
		`{"eventName":["INSERT","MODIFY"],"dynamodb":{"NewImage":{"gen":{"N":[{"exists":false}]}}}}`: false,
	} {
		filter, err := poller.CompileFilter([]string{pattern})
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		var event map[string]any
		if err := json.Unmarshal([]byte(modified), &event); err != nil {
			t.Fatal(err)
		}
		if got := filter.Match(event); got != want {
			t.Errorf("%s: match %v, want %v", pattern, got, want)
		}
	}
}

func TestFiltersAreAlternativesAndNoneIsNoFilter(t *testing.T) {
	event := map[string]any{"eventName": "REMOVE"}
	two, err := poller.CompileFilter([]string{`{"eventName":["INSERT"]}`, `{"eventName":["REMOVE"]}`})
	if err != nil || !two.Match(event) {
		t.Errorf("two patterns: match false, error %v", err)
	}
	none, err := poller.CompileFilter(nil)
	if err != nil || !none.Match(event) {
		t.Errorf("no pattern: match false, error %v", err)
	}
}

func TestAFilterThatWeDoNotImitateIsRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		`[]`:                                  "cannot unmarshal",
		`{}`:                                  "an empty object matches nothing",
		`{"a":"b"}`:                           "want an object or a list",
		`{"a":[]}`:                            "an empty list matches nothing",
		`{"a":[[1]]}`:                         "a list within a list",
		`{"a":[{"numeric":[">",1]}]}`:         `operator "numeric"`,
		`{"a":[{"exists":"yes"}]}`:            "want true or false",
		`{"a":[{"prefix":"x","suffix":"y"}]}`: "one operator",
		`{"a":[{"anything-but":{"wildcard":"*"}}]}`: "anything-but",
		`{"$or":["a"]}`: "list of objects",
		`{"dynamodb":{"NewImage":{"a":{"S":"text"}}}}`: "dynamodb: NewImage: a: S: want",
	} {
		if _, err := poller.CompileFilter([]string{pattern}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", pattern, err, want)
		}
	}
}
