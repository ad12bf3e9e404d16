# Completion of rowtune for bash: source this file, or install it as /usr/share/bash-completion/completions/rowtune.
# Options come from the program's own help, so that they cannot go stale.

_rowtune() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]}
  local commands="devices space tune best run dispatch stability report baseline verify compare merge replay help"
  local ops="copy softmax log_softmax layernorm rmsnorm fused_add_rmsnorm argmax_logsumexp" dtypes="f32 f16 bf16"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$before" = help ]; }; then
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
    return
  fi
  local choices=
  case $before in
    --op) choices="$ops all" ;;
    --dtype) choices="$dtypes all" ;;
    --regime) choices="cold warm overlapped" ;;
    --shapes) choices="quick llm cliffs" ;;
    --strategy) choices="exhaustive random racing local auto" ;;
    --device) choices="auto cpu cuda:0 cuda:all" ;;
    --format) if [ "${COMP_WORDS[1]}" = report ]; then choices="html md csv"; else choices="table json csv"; fi ;;
  esac
  if [ -n "$choices" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
  elif [[ $word == --* ]]; then
    choices=$("$program" help "${COMP_WORDS[1]}" 2>/dev/null | grep -o -E '^ *--[a-z-]+' | tr -d ' ')
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F _rowtune rowtune
