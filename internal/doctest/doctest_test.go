package doctest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/doctest"
)

const aPage = "# A page\n" +
	"\n" +
	"```sh\n" +
	"bin/dakghar inbox list --local\n" +
	"```\n" +
	"\n" +
	"```text\n" +
	"INBOX_ID\n" +
	"in_…\n" +
	"```\n" +
	"\n" +
	"- In a list:\n" +
	"\n" +
	"  ```sh aws-only\n" +
	"  aws sts get-caller-identity\n" +
	"    --more\n" +
	"  ```\n" +
	"\n" +
	"```sh\n" +
	"true\n" +
	"```\n" +
	"\n" +
	"Something else, which is no output:\n" +
	"\n" +
	"````text\n" +
	"fields @timestamp\n" +
	"```\n" +
	"````\n"

func TestABlockHasItsPlaceItsMarkAndItsOutput(t *testing.T) {
	t.Parallel()
	got, err := doctest.Parse(aPage)
	if err != nil {
		t.Fatal(err)
	}
	want := []doctest.Block{
		{Line: 3, Info: "sh", Text: "bin/dakghar inbox list --local\n", Output: "INBOX_ID\nin_…\n"},
		{Line: 7, Info: "text", Text: "INBOX_ID\nin_…\n"},
		{Line: 14, Info: "sh aws-only", Text: "aws sts get-caller-identity\n  --more\n"},
		{Line: 19, Info: "sh", Text: "true\n"},
		{Line: 25, Info: "text", Text: "fields @timestamp\n```\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if _, err := doctest.Parse("text\n```sh\nmake\n"); err == nil || err.Error() != "line 2: the block is not closed" {
		t.Errorf("an open block: %v", err)
	}
}

func TestNoBlockIsHidden(t *testing.T) {
	t.Parallel()
	tests := []struct {
		info, text       string
		runs             bool
		excluded, refuse string
	}{
		{info: "sh", text: "make run\n", runs: true},
		{info: "sh long", text: "make run\n", excluded: "long"},
		{info: "sh later", text: "make run\n", excluded: "later", refuse: `is left out because of "later": the reasons are aws-only, needs-aws-cli, needs-docker, long, example`},
		{info: "bash", text: "make run\n", refuse: "is marked bash: what a reader types is marked sh"},
		{info: "console", text: "$ make run\n", refuse: "is marked console: what a reader types is marked sh"},
		{info: "text", text: "ready\n  $ bin/dakghar dev\n", refuse: `has the command "$ bin/dakghar dev" and is not marked sh`},
		{info: "", text: "aws sts get-caller-identity\n", refuse: `has the command "aws sts get-caller-identity" and is not marked sh`},
		{info: "text", text: "filter ispresent(ack_ms)\n"},
		{info: "go", text: "make := 1\n"},
	}
	for _, tt := range tests {
		b := doctest.Block{Info: tt.info, Text: tt.text}
		if b.Runs() != tt.runs || b.Excluded() != tt.excluded || b.Problem() != tt.refuse {
			t.Errorf("%s %q: runs %v, excluded %q, problem %q; want %v, %q, %q", tt.info, tt.text, b.Runs(), b.Excluded(), b.Problem(), tt.runs, tt.excluded, tt.refuse)
		}
	}
}

func TestExpectedLinesAreLookedForButForWhatDiffers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expected, printed string
		missing           []string
	}{
		{"status  PROCESSED\n\n…\nversion 3\n", "inbox id  in_abc\nstatus           PROCESSED\n  version 3\n", nil},
		{"status PROCESSED\nversion 3\n", "status RETRY\nversion 31\n", []string{"status PROCESSED", "version 3"}},
		{"inbox id in_…\n", "inbox id    in_abc\n", nil},
		{"k1-… ended …\n", "k2-abc  trusted  a time\nk1-abc  ended    a time\n", nil},
		{"k1-… ended …\n", "k1-abc  trusted  a time\nxk1-abc ended a time\n", []string{"k1-… ended …"}},
		{"a …b… c\n", "a xbx c\na bc\na c\n", nil},
		{"a …b… c\n", "a xx c\na b\n", []string{"a …b… c"}},
		{"ab…ba\n", "aba\n", []string{"ab…ba"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.missing, doctest.Block{Output: tt.expected}.Missing(tt.printed)); diff != "" {
			t.Errorf("%q in %q: missing (-want +got):\n%s", tt.expected, tt.printed, diff)
		}
	}
}
