package transcript

import (
	"strings"

	"github.com/tidwall/gjson"
)

// docReader reads a document, lineReader a file of lines; both add tasks to the file.
type (
	docReader  func(*File, gjson.Result)
	lineReader func(*File, *lines)
)

// document tells what a whole JSON value is: a reader, or what it seems to be.
func document(v gjson.Result) (docReader, string) {
	if v.IsArray() {
		return arrayDocument(v)
	}
	if !v.IsObject() {
		return nil, ""
	}
	has := func(path string) bool { return v.Get(path).Exists() }
	messages := v.Get("messages").IsArray()
	switch {
	case v.Get("body").IsObject() && (has("headers") || has("dialect")) && requestFormat(v.Get("body"), v.Get("dialect").String()) != "":
		return readWrappedRequest, ""
	case v.Get("eval").IsObject() && (has("samples") || has("status")):
		return nil, "inspect eval log"
	case has("schema_version") && v.Get("steps").IsArray():
		return nil, "ATIF trajectory"
	case v.Get("trajectory").IsArray() || v.Get("history").IsArray() && has("info.exit_status"):
		return readSWEAgent, ""
	case messages && v.Get("response").IsObject() && (has("kwargs") || has("context_window") || has("latency_sec")):
		return readOpenHandsSDK, ""
	case messages && v.Get("info").IsObject() && (has("messages.0.parts") || has("info.directory")):
		return readOpenCode, ""
	case messages && (has("trajectory_format") || has("info.mini_version") || has("info.model_stats")):
		return readMiniObject, ""
	case v.Get("history").IsArray() && (has("instance_id") || has("issue") || has("instruction") || has("git_patch")):
		return nil, "" // a line of OpenHands eval output, read line by line
	case messages && has("system_prompt"):
		return nil, "hermes session"
	case requestFormat(v, "") != "":
		return readRequest, ""
	}
	return nil, ""
}

func arrayDocument(v gjson.Result) (docReader, string) {
	first := v.Get("0")
	switch {
	case first.Get("traj").IsArray():
		return readTauBench, ""
	case first.Get("lc").Exists():
		return nil, "LangChain message list"
	case first.Get("action").Exists() || first.Get("observation").Exists():
		return readOpenHandsEvents, ""
	case first.Get("role").Exists():
		if isMini(v) {
			return readMiniList, ""
		}
		return nil, "bare list of chat messages"
	}
	return nil, ""
}

// lineFormat tells what a line belongs to. Sure is false for a record that other formats could have too.
func lineFormat(v gjson.Result) (read lineReader, seems string, sure bool) {
	if !v.IsObject() {
		return nil, "", false
	}
	has := func(path string) bool { return v.Get(path).Exists() }
	typ := v.Get("type").String()
	switch {
	case v.Get("request").IsObject() && (has("request.body") || has("request.url")):
		return readClaudeTrace, "", true
	case v.Get("history").IsArray() && (has("instance_id") || has("issue") || has("instruction") || has("git_patch")):
		return readOpenHandsEval, "", true
	case v.Get("payload").IsObject() && isCodexType(typ):
		return readCodex, "", true
	case has("record_type"), typ == "" && has("id") && has("timestamp") && (has("instructions") || has("git")):
		return readCodexLegacy, "", true
	case isClaudeRecord(v, typ):
		return readClaudeCode, "", true
	case typ == "session" && (has("cwd") || has("version") || has("provider")), isPiRecord(v, typ):
		return readPi, "", true
	case typ == "metadata" && has("protocol_version"):
		return nil, "kimi wire log", false
	case typ == "init" && has("session_id"):
		return nil, "gemini stream-json log", false
	case strings.HasPrefix(typ, "session.") && has("data"):
		return nil, "copilot event log", false
	case has("kind") && has("raw"):
		return nil, "managed agents event log", false
	case has("system_prompt") && v.Get("messages").IsArray():
		return nil, "hermes session", false
	case isOutput(typ) || typ == "message" && has("role") && v.Get("content").IsArray() || typ == "function_call" && has("call_id"):
		return readCodexLegacy, "", false
	}
	return nil, "", false
}
