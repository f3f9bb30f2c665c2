package secretsmanager

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"dakghar/internal/devstack/awsjson"
)

type createSecretInput struct {
	Name               string
	ClientRequestToken string
	Description        string
	value
}

type versionOutput struct {
	ARN           string
	Name          string
	VersionID     string   `json:"VersionId,omitempty"`
	VersionStages []string `json:"VersionStages,omitempty"`
}

func (s *Server) createSecret(_ *http.Request, in createSecretInput) (versionOutput, error) {
	if len(in.Name) > nameMax || !secretName.MatchString(in.Name) {
		return versionOutput{}, invalidParameter("A secret's name must be 1 to %d letters, digits and the characters /_+=.@-", nameMax)
	}
	if len(in.Description) > descriptionMax {
		return versionOutput{}, invalidParameter("A description has at most %d bytes.", descriptionMax)
	}
	if err := in.check(false); err != nil {
		return versionOutput{}, err
	}
	if err := checkToken(in.ClientRequestToken, !in.isEmpty()); err != nil {
		return versionOutput{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, err := s.find(in.Name); err == nil {
		return x.createAgain(in)
	}
	now := s.cfg.Now()
	x := &secret{name: in.Name, arn: s.arn(in.Name, s.cfg.NewID()), description: in.Description, created: now, changed: now}
	s.secrets[x.name] = x
	out := versionOutput{ARN: x.arn, Name: x.name}
	if in.isEmpty() {
		return out, nil
	}
	out.VersionID = in.ClientRequestToken
	return out, x.add(in.ClientRequestToken, in.value, nil, now)
}

// createAgain answers a creation of a secret that exists: the same token with
// the same value is a retry, everything else is refused.
func (x *secret) createAgain(in createSecretInput) (versionOutput, error) {
	if !x.deletion.IsZero() {
		return versionOutput{}, invalidRequest("You can't create this secret because a secret with this name is already scheduled for deletion.")
	}
	if v := x.version(in.ClientRequestToken); v != nil && v.value.equals(in.value) {
		return versionOutput{ARN: x.arn, Name: x.name, VersionID: v.id}, nil
	}
	return versionOutput{}, exists("The operation failed because the secret already exists.")
}

// checkToken refuses a token that cannot be a version's id.
func checkToken(token string, needed bool) error {
	if token == "" && !needed {
		return nil
	}
	if token == "" {
		return invalidRequest("You must provide a ClientRequestToken value. We recommend a UUID-type value.")
	}
	if len(token) < tokenMin || len(token) > tokenMax {
		return invalidParameter("A ClientRequestToken must have %d to %d characters.", tokenMin, tokenMax)
	}
	return nil
}

type putSecretValueInput struct {
	SecretID           string `json:"SecretId"`
	ClientRequestToken string
	VersionStages      []string
	value
}

func (s *Server) putSecretValue(_ *http.Request, in putSecretValueInput) (versionOutput, error) {
	if err := in.check(true); err != nil {
		return versionOutput{}, err
	}
	if err := checkToken(in.ClientRequestToken, true); err != nil {
		return versionOutput{}, err
	}
	labels, err := labelsOf(in.VersionStages)
	if err != nil {
		return versionOutput{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.use(in.SecretID)
	if err != nil {
		return versionOutput{}, err
	}
	v := x.version(in.ClientRequestToken)
	switch {
	case v == nil:
		if err := x.add(in.ClientRequestToken, in.value, labels, s.cfg.Now()); err != nil {
			return versionOutput{}, err
		}
		v = x.version(in.ClientRequestToken)
	case !v.value.equals(in.value):
		return versionOutput{}, exists("You can't use ClientRequestToken %s because that value is already in use for a version with another value.", v.id)
	}
	return versionOutput{ARN: x.arn, Name: x.name, VersionID: v.id, VersionStages: v.labels}, nil
}

type getSecretValueInput struct {
	SecretID     string `json:"SecretId"`
	VersionID    string `json:"VersionId"`
	VersionStage string
}

type secretValueOutput struct {
	ARN           string
	Name          string
	VersionID     string `json:"VersionId"`
	VersionStages []string
	CreatedDate   awsjson.Time
	value
}

func (s *Server) getSecretValue(_ *http.Request, in getSecretValueInput) (secretValueOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.use(in.SecretID)
	if err != nil {
		return secretValueOutput{}, err
	}
	v, err := x.lookUp(in.VersionID, in.VersionStage)
	if err != nil {
		return secretValueOutput{}, err
	}
	// The service tells when something was last read only to the day.
	day := s.cfg.Now().UTC().Truncate(24 * time.Hour)
	x.accessed, v.accessed = day, day
	return secretValueOutput{
		ARN: x.arn, Name: x.name, VersionID: v.id, VersionStages: append([]string{}, v.labels...),
		CreatedDate: awsjson.Time(v.created), value: v.value,
	}, nil
}

// lookUp finds a version by id, by label, or by both when they agree.
func (x *secret) lookUp(id, label string) (*version, error) {
	if id == "" {
		if label == "" {
			label = current
		}
		if v := x.holder(label); v != nil {
			return v, nil
		}
		return nil, notFound("Secrets Manager can't find the specified secret value for staging label: %s", label)
	}
	v := x.version(id)
	if v == nil {
		return nil, notFound("Secrets Manager can't find the specified secret value for VersionId: %s", id)
	}
	if label != "" && !v.has(label) {
		return nil, invalidRequest("You provided a VersionStage that is not associated to the provided VersionId.")
	}
	return v, nil
}

type secretIDInput struct {
	SecretID string `json:"SecretId"`
}

type describeSecretOutput struct {
	ARN                string
	Name               string
	Description        string              `json:"Description,omitempty"`
	CreatedDate        awsjson.Time        `json:"CreatedDate"`
	LastChangedDate    awsjson.Time        `json:"LastChangedDate"`
	LastAccessedDate   *awsjson.Time       `json:"LastAccessedDate,omitempty"`
	DeletedDate        *awsjson.Time       `json:"DeletedDate,omitempty"`
	VersionIDsToStages map[string][]string `json:"VersionIdsToStages,omitempty"`
}

func (s *Server) describeSecret(_ *http.Request, in secretIDInput) (describeSecretOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.find(in.SecretID)
	if err != nil {
		return describeSecretOutput{}, err
	}
	return describeSecretOutput{
		ARN: x.arn, Name: x.name, Description: x.description,
		CreatedDate: awsjson.Time(x.created), LastChangedDate: awsjson.Time(x.changed),
		LastAccessedDate: optional(x.accessed), DeletedDate: optional(x.deletion),
		VersionIDsToStages: x.stages(),
	}, nil
}

func optional(t time.Time) *awsjson.Time {
	if t.IsZero() {
		return nil
	}
	stamp := awsjson.Time(t)
	return &stamp
}

type listSecretVersionIDsInput struct {
	SecretID          string `json:"SecretId"`
	MaxResults        *int
	NextToken         string
	IncludeDeprecated bool
}

type versionEntry struct {
	VersionID        string        `json:"VersionId"`
	VersionStages    []string      `json:"VersionStages,omitempty"`
	CreatedDate      awsjson.Time  `json:"CreatedDate"`
	LastAccessedDate *awsjson.Time `json:"LastAccessedDate,omitempty"`
}

type listSecretVersionIDsOutput struct {
	ARN       string
	Name      string
	Versions  []versionEntry
	NextToken string `json:"NextToken,omitempty"`
}

func (s *Server) listSecretVersionIDs(_ *http.Request, in listSecretVersionIDsInput) (listSecretVersionIDsOutput, error) {
	limit := VersionsMax
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	if limit < 1 || limit > VersionsMax {
		return listSecretVersionIDsOutput{}, invalidParameter("MaxResults must be 1 to %d.", VersionsMax)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.find(in.SecretID)
	if err != nil {
		return listSecretVersionIDsOutput{}, err
	}
	listed := slices.Clone(x.versions)
	if !in.IncludeDeprecated {
		listed = slices.DeleteFunc(listed, func(v *version) bool { return len(v.labels) == 0 })
	}
	from, err := start(in.NextToken, len(listed))
	if err != nil {
		return listSecretVersionIDsOutput{}, err
	}
	out := listSecretVersionIDsOutput{ARN: x.arn, Name: x.name, Versions: []versionEntry{}}
	to := min(from+limit, len(listed))
	for _, v := range listed[from:to] {
		out.Versions = append(out.Versions, versionEntry{
			VersionID: v.id, VersionStages: v.labels, CreatedDate: awsjson.Time(v.created), LastAccessedDate: optional(v.accessed),
		})
	}
	if to < len(listed) {
		out.NextToken = strconv.Itoa(to)
	}
	return out, nil
}

// start reads a page token: the number of versions already listed.
func start(token string, listed int) (int, error) {
	if token == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 || n > listed {
		return 0, refuse("InvalidNextTokenException", "The NextToken is not one that this service gave out.")
	}
	return n, nil
}
