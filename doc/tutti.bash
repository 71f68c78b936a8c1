# bash completion for tutti: asks the program itself, so it knows every verb and option.
_tutti()
{
    local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}
    if [ "$COMP_CWORD" = 1 ]; then
        local verbs
        verbs=$("$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p')
        COMPREPLY=($(compgen -W "$verbs help --help --version --check-build" -- "$word"))
    elif [[ $word == -* ]]; then
        local flags
        flags=$("$1" "$verb" --help 2>/dev/null | grep -oE '^  (-., )?--[a-z0-9-]+' |
            grep -oE -- '--[a-z0-9-]+')
        COMPREPLY=($(compgen -W "$flags --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _tutti tutti
