package templatetest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// releaseAlarms take a new version back. Each sees both versions together, so what the old one would raise stops a release as
// well.
var releaseAlarms = map[string][]string{
	"IngressFunction":    {"AckSlow", "FrontDoorErrors", "IngressFails"},
	"RelayFunction":      {"RelayLags", "RelayFails"},
	"ProcessorFunction":  {"ProcessorFails", "EventsFail"},
	"DispatcherFunction": {"DispatcherFails", "DeliveriesFaulted"},
}

func TestNewVersionsShiftAsTheParameterSaysAndGoBackOnAlarm(t *testing.T) {
	for shift, config := range map[string]string{
		"AllAtOnce": "AllAtOnce", "Canary10Percent5Minutes": "Canary10Percent5Minutes", "Linear10PercentEvery1Minute": "Linear10PercentEvery1Minute",
	} {
		tmpl := transformed(t, packaged, map[string]string{"DeployShift": shift})
		got, want := map[string]object{}, map[string]object{}
		for function, alarms := range releaseAlarms {
			var names []any
			for _, alarm := range alarms {
				if tmpl.Resources[alarm].Type != "AWS::CloudWatch::Alarm" {
					t.Errorf("%s is no alarm", alarm)
				}
				names = append(names, object{"Name": ref(alarm)})
			}
			group := function + "DeploymentGroup"
			got[function] = tmpl.Resources[group].Properties
			want[function] = object{
				"ApplicationName": ref("ServerlessDeploymentApplication"),
				"DeploymentConfigName": object{"Fn::Sub": []any{
					"CodeDeployDefault.Lambda${ConfigName}", object{"ConfigName": config},
				}},
				"DeploymentStyle":           object{"DeploymentType": "BLUE_GREEN", "DeploymentOption": "WITH_TRAFFIC_CONTROL"},
				"AutoRollbackConfiguration": object{"Enabled": true, "Events": []any{"DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_STOP_ON_REQUEST"}},
				"AlarmConfiguration":        object{"Fn::If": []any{"Shifts", object{"Enabled": true, "Alarms": names}, object{}}},
				"ServiceRoleArn":            attribute("ReleaseRole.Arn"),
			}
			policy := object{"CodeDeployLambdaAliasUpdate": object{"ApplicationName": ref("ServerlessDeploymentApplication"), "DeploymentGroupName": ref(group)}}
			if diff := cmp.Diff(policy, tmpl.Resources[function+"Aliaslive"].UpdatePolicy); diff != "" {
				t.Errorf("who moves the alias of %s (-want +got):\n%s", function, diff)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("deployment groups with %s (-want +got):\n%s", shift, diff)
		}
	}
}

// A tenth of one run a minute is nobody: the reconciler's alias moves at once, by CloudFormation itself.
func theReconcilerDoesNotShift(t *testing.T, tmpl template) {
	t.Helper()
	if got := tmpl.Resources["ReconcilerFunctionAliaslive"].UpdatePolicy; got != nil {
		t.Errorf("its alias moves by %v", got)
	}
}

// An alarm that looks at one version, or at nothing that a version does, would let a bad one through.
func TestAlarmsThatTakeAReleaseBackSeeTheAlias(t *testing.T) {
	tmpl := load(t)
	for function, alarms := range releaseAlarms {
		var seen []string
		for _, alarm := range alarms {
			p := tmpl.Resources[alarm].Properties
			if period(t, p)*p["DatapointsToAlarm"].(float64) > 120 {
				t.Errorf("%s needs longer than two bad minutes: the shortest shift is over after five", alarm)
			}
			for _, metric := range alarmMetrics(t, p) {
				for _, dimension := range metric.Dimensions {
					if dimension[0] == "Resource" {
						seen = append(seen, dimension[1])
					}
				}
			}
		}
		if want := []string{"${" + function + "}:live"}; !slices.Equal(seen, want) {
			t.Errorf("alarms of %s look at %q, want %q", function, seen, want)
		}
	}
}

// period is an alarm's, in seconds, or that of the metrics of its expression.
func period(t *testing.T, p object) float64 {
	t.Helper()
	if p["Metrics"] == nil {
		return p["Period"].(float64)
	}
	longest := 0.0
	for _, m := range p["Metrics"].([]any) {
		if stat, ok := m.(object)["MetricStat"].(object); ok {
			longest = max(longest, stat["Period"].(float64))
		}
	}
	return longest
}

// Every parameter of DeployShift that SAM does not know by name would be taken for the name of a configuration of one's own.
func TestEveryShiftIsOneThatCodeDeployHas(t *testing.T) {
	want := []string{
		"AllAtOnce", "Canary10Percent5Minutes", "Canary10Percent10Minutes", "Canary10Percent15Minutes", "Canary10Percent30Minutes",
		"Linear10PercentEvery1Minute", "Linear10PercentEvery2Minutes", "Linear10PercentEvery3Minutes", "Linear10PercentEvery10Minutes",
	}
	if diff := cmp.Diff(want, list(load(t).Parameters["DeployShift"]["AllowedValues"])); diff != "" {
		t.Errorf("shifts (-want +got):\n%s", diff)
	}
}
