/** What to do about a broken CEL rule. The messages are those of the Gateway API's own rules. */

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/^filter\.(\w+) must be nil if the filter\.type is not (\w+)$/, "Remove $1, or set type: $2."],
  [/^filter\.(\w+) must be specified for (\w+) filter\.type$/, "Add $1, or use another type than $2."],
  [/^(\w+) filter cannot be repeated$/, "Keep one $1 filter and merge the others into it."],
  [/^(\w+) must be nil if type is not (\w+)$/, "Remove $1, or set type: $2."],
  [/^(\w+) must be specified for (\w+) type$/, "Add $1, or use another type than $2."],
  [/^(\w+) must be specified when (?:type|protocol) is set to '(\w+)'$/, "Add $1."],
  [/^(\w+) must be '(\w+)' when (\w+) is set$/, "Set $1: $2, or remove $3."],
  [/^Listener name must be unique/, "Give every listener of this object a name of its own."],
  [
    /^Combination of port, protocol and hostname must be unique/,
    "Change the port, protocol or hostname of one of them.",
  ],
  [/^tls must not be specified for protocols/, "Remove tls, or use protocol HTTPS or TLS."],
  [/^tls mode must be Terminate/, "Set tls.mode: Terminate, or use protocol TLS for Passthrough."],
  [/^tls mode must be set/, "Add tls with mode: Terminate or mode: Passthrough."],
  [/^hostname must not be specified/, "Remove hostname: TCP and UDP know no names."],
  [/^certificateRefs or options must be specified/, "Add certificateRefs with the name of a TLS Secret."],
  [/^Must have port for Service reference/, "Add the port of the Service, such as port: 80."],
  [
    /^sectionName or port must be (?:specified|unique)/,
    "Give each reference to the same parent a sectionName or port of its own.",
  ],
  [
    /^sectionName must be (?:specified|unique)/,
    "Give each reference to the same target a sectionName of its own.",
  ],
  [/^Rule name must be unique/, "Give every rule of this route a name of its own."],
  [/^value must be an absolute path/, "Start the path with '/'."],
  [/^must not (contain|end with) ('[^']+')/, "Write the path so that it does not $1 $2."],
  [
    /^RequestRedirect filter must not be used together/,
    "Remove backendRefs, or remove the RequestRedirect filter.",
  ],
  [
    /exactly one PathPrefix match must be specified$/,
    "Give the rule exactly one match, with a path of type PathPrefix.",
  ],
  [/^backendRequest timeout cannot be longer/, "Make timeouts.backendRequest at most timeouts.request."],
  [/^exactly one of the fields in \[(\w+) (\w+)\]/, "Set $1 or $2, not both and not neither."],
  [
    /^listeners must not be empty/,
    "Add a listener; only a Gateway with infrastructure.allowedChildren may have none.",
  ],
];

const MAX_RULE_SHOWN = 160;

export function remedyFor(message: string, rule: string): string {
  for (const [pattern, remedy] of REMEDIES) {
    const match = pattern.exec(message);
    if (match !== null) return remedy.replaceAll(/\$(\d)/g, (_, group: string) => match[Number(group)] ?? "");
  }
  const shown = rule.length > MAX_RULE_SHOWN ? `${rule.slice(0, MAX_RULE_SHOWN)}…` : rule;
  return `Change it so that this rule of the API holds: ${shown}`;
}
