// Alerts on what the worker logs. Each line of the worker is a JSON object; what happened is its `event`.

@description('Azure region.')
param location string

@description('First part of the names of the alerts: the name of the function app.')
param name string

@description('Resource id of the app\'s telemetry.')
param insightsId string

@description('Resource ids of the action groups that are told.')
param actionGroupIds string[]

@description('Resource tags.')
param tags object = {}

var lines = 'traces | extend line = parse_json(message) | extend event = tostring(line.event)'

// threshold: the alert fires above it. minutes: how far back it looks, each time that much has passed.
var alerts = [
  {
    name: 'jobs-fail'
    description: 'More than half of the jobs that ended in the last hour failed.'
    query: '${lines} | where event == "finished" | summarize failed = countif(tostring(line.result) == "failed"), jobs = count() | where jobs >= 4 and failed * 2 > jobs'
    threshold: 0
    minutes: 60
    severity: 2
  }
  {
    name: 'blob-access-denied'
    description: 'Nodes could not read an input or store a result.'
    query: '${lines} | where event == "ended" and tostring(line.failure) endswith "AccessDenied"'
    threshold: 0
    minutes: 15
    severity: 1
  }
  {
    name: 'no-nodes'
    description: 'Jobs wait because of a quota, or because Azure has no such nodes.'
    query: '${lines} | where event in ("waits", "waiting") and tostring(line.why) matches regex "(?i)quota|allocat"'
    threshold: 10
    minutes: 30
    severity: 3
  }
  {
    name: 'preemptions'
    description: 'Many Spot nodes are taken away while they work: more nodes of the other tier, or Dedicated ones, may be cheaper.'
    query: '${lines} | where event == "preempted"'
    threshold: 10
    minutes: 60
    severity: 3
  }
  {
    name: 'jobs-wait'
    description: 'A job has told for an hour that it waits.'
    query: '${lines} | where event in ("waits", "waiting") | summarize looks = count(), first = min(timestamp), last = max(timestamp) by job = tostring(line.job) | where last - first > 50m'
    threshold: 0
    minutes: 60
    severity: 3
  }
  {
    name: 'messages-rejected'
    description: 'Messages were rejected or came from a poison queue; they are kept under rejected/ in the worker\'s container.'
    query: '${lines} | where event == "message rejected"'
    threshold: 0
    minutes: 15
    severity: 2
  }
  {
    name: 'operator-needed'
    description: 'A job waits for an operator; the line says why.'
    query: '${lines} | where event == "waits for an operator"'
    threshold: 0
    minutes: 15
    severity: 1
  }
]

resource alert 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for item in alerts: {
    name: '${name}-${item.name}'
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      displayName: '${name}: ${item.name}'
      description: item.description
      severity: item.severity
      enabled: true
      scopes: [
        insightsId
      ]
      evaluationFrequency: 'PT${item.minutes}M'
      windowSize: 'PT${item.minutes}M'
      criteria: {
        allOf: [
          {
            query: item.query
            timeAggregation: 'Count'
            operator: 'GreaterThan'
            threshold: item.threshold
          }
        ]
      }
      actions: {
        actionGroups: actionGroupIds
      }
    }
  }
]
