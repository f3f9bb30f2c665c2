package templatetest

import (
	"strings"
	"testing"
)

// checkov passes over what a resource says it should, and looks at no reason. We do: a check that is skipped has a sentence.
func TestEverySkippedCheckHasItsReason(t *testing.T) {
	skipped := 0
	for id, r := range load(t).Resources {
		checkov, _ := r.Metadata["checkov"].(object)
		skips, _ := checkov["skip"].([]any)
		for _, s := range skips {
			skipped++
			skip := s.(object)
			comment, _ := skip["comment"].(string)
			if !strings.HasPrefix(text(skip["id"]), "CKV") || len(comment) < 30 || !strings.HasSuffix(comment, ".") {
				t.Errorf("%s skips %v for the reason %q", id, skip["id"], comment)
			}
		}
	}
	if skipped == 0 {
		t.Error("no skipped check is found: has checkov another name in Metadata?")
	}
}
