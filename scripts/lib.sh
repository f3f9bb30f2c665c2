# Functions that the scripts share. Sourced, never run; it changes nothing by being sourced.

# java_17 prints the path of a Java runtime, version 17 or later.
java_17() {
  local java
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)"; do
    [[ -n $java && -x $java ]] || continue
    local major
    major=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [[ -n $major && $major -ge 17 ]] && { printf '%s\n' "$java"; return 0; }
  done
  return 1
}

# container_engine prints the command of a container engine that answers.
container_engine() {
  local engine
  for engine in docker podman; do
    command -v "$engine" >/dev/null && "$engine" info >/dev/null 2>&1 && { printf '%s\n' "$engine"; return 0; }
  done
  return 1
}

# docker_architecture prints the architecture of Docker's engine in Lambda's words; it fails where none answers.
docker_architecture() {
  local architecture
  architecture=$(docker info --format '{{.Architecture}}' 2>/dev/null) && [[ -n $architecture ]] || return 1
  printf '%s\n' "${architecture/aarch64/arm64}"
}

# lambda_image ARCHITECTURE prints the image that the SAM CLI runs the functions in.
lambda_image() {
  printf 'public.ecr.aws/lambda/provided:al2023-%s\n' "$1"
}

# free_port prints a loopback port that nothing listens on. Somebody may take it before it is used: whoever starts a
# server on it must be ready to try another.
free_port() {
  local port
  for _ in {1..50}; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { printf '%s\n' "$port"; return 0; }
  done
  return 1
}

# answers PORT tells whether an HTTP server on 127.0.0.1 answers, whatever it says.
answers() {
  local line
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' >&3
  read -r -t 5 line <&3
  exec 3>&-
  [[ $line == HTTP/* ]]
} 2>/dev/null

# await_answer PORT PID SECONDS waits until the server answers; it gives up when the process ends or the time is over.
await_answer() {
  local deadline=$((SECONDS + $3))
  until (answers "$1"); do
    kill -0 "$2" 2>/dev/null || return 1
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}
