package templatetest

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/body"
)

func edge(t *testing.T) template {
	t.Helper()
	return loadFile(t, "../../infra/edge.yaml")
}

type firewallRule struct {
	Name      string
	Priority  float64
	Statement any
	Does      any // Action or OverrideAction
}

func firewallRules(t *testing.T) []firewallRule {
	t.Helper()
	var rules []firewallRule
	for _, r := range at(t, edge(t).Resources["Firewall"].Properties, "Rules").([]any) {
		rule := r.(object)
		does := rule["Action"]
		if does == nil {
			does = rule["OverrideAction"]
		}
		rules = append(rules, firewallRule{text(rule["Name"]), rule["Priority"].(float64), rule["Statement"], does})
	}
	return rules
}

// Two rules refuse, with the answers that the front door itself would give; AWS's own only count.
func TestTheFirewallRefusesByLengthAndRateAndCountsTheRest(t *testing.T) {
	block := func(code float64) object {
		return object{"Block": object{"CustomResponse": object{"ResponseCode": code}}}
	}
	managed := func(name string) object {
		return object{"ManagedRuleGroupStatement": object{"VendorName": "AWS", "Name": name}}
	}
	count := object{"Count": object{}}
	got := firewallRules(t)
	want := []firewallRule{
		{"too-large", 0, object{"RegexMatchStatement": object{
			"FieldToMatch":        object{"SingleHeader": object{"Name": "content-length"}},
			"RegexString":         lengthPattern(t),
			"TextTransformations": []any{object{"Priority": 0.0, "Type": "NONE"}},
		}}, block(413)},
		{"too-many", 1, object{"RateBasedStatement": object{
			"AggregateKeyType": "IP", "EvaluationWindowSec": 60.0, "Limit": ref("RequestsPerAddress"),
		}}, block(429)},
		{"known-bad-addresses", 2, managed("AWSManagedRulesAmazonIpReputationList"), count},
		{"common", 3, managed("AWSManagedRulesCommonRuleSet"), count},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules of the firewall (-want +got):\n%s", diff)
	}
}

func lengthPattern(t *testing.T) string {
	t.Helper()
	first := at(t, edge(t).Resources["Firewall"].Properties, "Rules").([]any)[0]
	return text(at(t, first, "Statement", "RegexMatchStatement", "RegexString"))
}

// What ingress takes, the firewall lets through; the next byte it does not.
func TestTheFirewallAdmitsWhatIngressTakes(t *testing.T) {
	refuses := regexp.MustCompile(lengthPattern(t))
	const most = body.RawBytesMax
	for length := range 3 * most {
		if got := refuses.MatchString(strconv.Itoa(length)); got != (length > most) {
			t.Fatalf("a content-length of %d is refused: %v", length, got)
		}
	}
	for length, want := range map[string]bool{
		"9999999": true, "10000000": true, "99999999999999999999": true, "0001048576": false, "0001048577": true,
		"": false, "-1": false, "12, 12": false, "1e9": false,
	} {
		if got := refuses.MatchString(length); got != want {
			t.Errorf("a content-length of %q is refused: %v, want %v", length, got, want)
		}
	}
}

// Proves M4: a sample of a request would have its headers, and with them its signature.
func TestTheFirewallKeepsNoSamples(t *testing.T) {
	p := edge(t).Resources["Firewall"].Properties
	views := []any{at(t, p, "VisibilityConfig")}
	for _, rule := range at(t, p, "Rules").([]any) {
		views = append(views, at(t, rule, "VisibilityConfig"))
	}
	for _, view := range views {
		if view.(object)["SampledRequestsEnabled"] != false {
			t.Errorf("%s keeps samples", text(view.(object)["MetricName"]))
		}
	}
}

// Proves V1: what is signed arrives as it was sent: nothing cached, no header left out but the host, TLS on both sides.
func TestTheDistributionPassesRequestsOnAsTheyAre(t *testing.T) {
	const cachingDisabled, allButHost = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad", "b689b0a8-53d0-40ab-baf2-68738e2966ac"
	got := at(t, edge(t).Resources["Distribution"].Properties, "DistributionConfig").(object)
	delete(got, "Comment")
	want := object{
		"Enabled": true, "HttpVersion": "http2", "IPV6Enabled": true,
		"WebACLId": attribute("Firewall.Arn"),
		"Aliases":  object{"Fn::If": []any{"HasDomain", []any{ref("DomainName")}, ref("AWS::NoValue")}},
		"ViewerCertificate": object{"Fn::If": []any{
			"HasDomain",
			object{"AcmCertificateArn": ref("CertificateArn"), "MinimumProtocolVersion": "TLSv1.2_2021", "SslSupportMethod": "sni-only"},
			object{"CloudFrontDefaultCertificate": true},
		}},
		"Origins": []any{object{
			"Id": "front-door", "DomainName": ref("OriginHost"), "ConnectionAttempts": 2.0, "ConnectionTimeout": 2.0,
			"CustomOriginConfig": object{
				"OriginProtocolPolicy": "https-only", "OriginSSLProtocols": []any{"TLSv1.2"}, "OriginReadTimeout": 5.0,
				"OriginMtlsConfig": object{"Fn::If": []any{
					"HasClientCertificate", object{"ClientCertificateArn": ref("OriginClientCertificateArn")}, ref("AWS::NoValue"),
				}},
			},
		}},
		"DefaultCacheBehavior": object{
			"TargetOriginId": "front-door", "ViewerProtocolPolicy": "https-only", "Compress": false,
			"AllowedMethods": []any{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"},
			"CachePolicyId":  cachingDisabled, "OriginRequestPolicyId": allButHost,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("distribution (-want +got):\n%s", diff)
	}
}
