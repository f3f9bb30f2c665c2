package templatetest

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/capacity"
)

// stage is a set of samconfig.toml.
type stage struct {
	Settings   map[string]string // "deploy.resolve_s3" to the value as it is written
	Parameters map[string]string // parameter_overrides
}

var (
	section  = regexp.MustCompile(`^\[([a-z]+)\.([a-z]+)\.parameters\]$`)
	setting  = regexp.MustCompile(`^([a-z_0-9]+) = (.+)$`)
	override = regexp.MustCompile(`^  "([A-Za-z]+)=([^"]*)",$`)
)

// stages reads samconfig.toml as far as TOML goes in it, and fails on any line that it does not know.
func stages(t *testing.T) map[string]stage {
	t.Helper()
	text, err := os.ReadFile("../../samconfig.toml")
	if err != nil {
		t.Fatal(err)
	}
	out, name, command, inside := map[string]stage{}, "", "", false
	for n, line := range strings.Split(string(text), "\n") {
		in, trimmed := out[name], strings.TrimSpace(line)
		switch head, set, over := section.FindStringSubmatch(line), setting.FindStringSubmatch(line), override.FindStringSubmatch(line); {
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || line == "version = 0.1":
		case inside && over != nil:
			if _, twice := in.Parameters[over[1]]; twice {
				t.Fatalf("samconfig.toml:%d: %s is there twice", n+1, over[1])
			}
			in.Parameters[over[1]] = over[2]
		case inside && line == "]":
			inside = false
		case head != nil:
			name, command = head[1], head[2]
			if _, known := out[name]; !known {
				out[name] = stage{Settings: map[string]string{}, Parameters: map[string]string{}}
			}
		case set != nil && set[2] == "[" && set[1] == "parameter_overrides" && command == "deploy":
			inside = true
		case set != nil && name != "":
			in.Settings[command+"."+set[1]] = strings.Trim(set[2], `"`)
		default:
			t.Fatalf("samconfig.toml:%d: what is %q?", n+1, line)
		}
	}
	return out
}

// A name that the template does not have would be dropped without a word; a value that it refuses stops a deploy at its end.
func TestEveryStageSetsParametersThatExistToValuesThatTheyTake(t *testing.T) {
	parameters := load(t).Parameters
	for name, s := range stages(t) {
		for parameter, value := range s.Parameters {
			declared, ok := parameters[parameter]
			if !ok {
				t.Errorf("%s sets %s, which the template does not have", name, parameter)
				continue
			}
			if allowed, some := declared["AllowedValues"]; some && !slices.Contains(list(allowed), value) {
				t.Errorf("%s: %s is %q, allowed is %q", name, parameter, value, list(allowed))
			}
			if pattern, some := declared["AllowedPattern"].(string); some && !regexp.MustCompile(pattern).MatchString(value) {
				t.Errorf("%s: %s is %q, allowed is %s", name, parameter, value, pattern)
			}
			if _, err := strconv.Atoi(value); err != nil && declared["Type"] == "Number" {
				t.Errorf("%s: %s is %q, which is no number", name, parameter, value)
			}
		}
	}
}

// What matters most of a stage.
type protection struct {
	Stack, DeletionProtection, PointInTimeRecovery, DeployShift string
}

func TestStagingAndProductionAreProtectedAndShift(t *testing.T) {
	got := map[string]protection{}
	for name, s := range stages(t) {
		p := s.Parameters
		got[name] = protection{s.Settings["global.stack_name"], p["DeletionProtection"], p["PointInTimeRecovery"], p["DeployShift"]}
	}
	want := map[string]protection{
		"default": {"dakghar-dev", "false", "false", "AllAtOnce"},
		"staging": {"dakghar-staging", "true", "true", "Canary10Percent5Minutes"},
		"prod":    {"dakghar", "true", "true", "Canary10Percent5Minutes"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

// Stages differ in their name and parameters and in nothing else, or one would be tried and another be shipped.
func TestStagesAreDeployedTheSameWay(t *testing.T) {
	want := map[string]string{
		"build.build_in_source": "true", "validate.lint": "true",
		"deploy.capabilities": "CAPABILITY_IAM", "deploy.resolve_s3": "true", "deploy.confirm_changeset": "true",
		"deploy.fail_on_empty_changeset": "false",
	}
	for name, s := range stages(t) {
		got := maps.Clone(s.Settings)
		delete(got, "global.stack_name")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("settings of %s (-want +got):\n%s", name, diff)
		}
	}
}

// Production is made for the load that the calculator computes: equal where it has the number, and enough where it has the
// least.
func TestProductionIsMadeForTwoThousandRequestsASecond(t *testing.T) {
	prod := stages(t)["prod"].Parameters
	number := func(parameter string) float64 {
		t.Helper()
		n, err := strconv.ParseFloat(prod[parameter], 64)
		if err != nil {
			t.Fatalf("%s: %v", parameter, err)
		}
		return n
	}
	l := capacity.Defaults()
	l.RPS = 2000
	r := capacity.Estimate(l, capacity.ListPrices())
	warm, reads := 0.0, 0.0
	for _, table := range r.Tables {
		warm, reads = max(warm, table.Warm), max(reads, table.Read)
	}
	if got := number("WarmWriteUnits"); got != warm {
		t.Errorf("WarmWriteUnits is %v, the hottest table wants %v", got, warm)
	}
	environments := map[string]float64{}
	for _, f := range r.Functions {
		environments[f.Name] = f.Concurrency
	}
	const perEnvironment = 10 // requests a second that an account admits for each
	for parameter, least := range map[string]float64{
		"WarmReadUnits":                reads,
		"RouteRatePerSecond":           l.RPS,
		"RouteBurst":                   l.RPS,
		"IngressReservedConcurrency":   max(environments["ingress"], l.RPS/perEnvironment),
		"ProcessorMaximumConcurrency":  environments["processor"],
		"DispatcherMaximumConcurrency": environments["dispatcher"],
	} {
		if got := number(parameter); got < least {
			t.Errorf("%s is %v, at least %v are wanted", parameter, got, least)
		}
	}
	if got, most := number("IngressProvisionedConcurrency"), number("IngressReservedConcurrency")/2; got > most {
		t.Errorf("IngressProvisionedConcurrency of %v is more than half the reserve: two versions do not fit while they shift", got)
	}
	if environments["ingress"] == 0 || environments["processor"] == 0 {
		t.Errorf("the calculator has no environments for %v", environments)
	}
}
